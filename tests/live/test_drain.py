from __future__ import annotations

import signal
import socket
from urllib.parse import urlsplit

from tests.live.conftest import StartService
from tests.live.service import LiveService
from tests.services import START_SECONDS
from tests.waiting import TIMEOUT_SECONDS, wait_until

# The sandbox's `slow` model sends a word every tenth of a second.
_PROMPT = " ".join(f"word{number}" for number in range(30))


def test_stop__during_a_stream__stream_ends_whole_and_is_recorded(start_service: StartService) -> None:
    service = start_service()
    stream = service.openai(default_headers={"x-svc-session-id": "drained"}).chat.completions.create(
        model="sandbox/slow", messages=[{"role": "user", "content": _PROMPT}], stream=True
    )
    chunks = iter(stream)
    received = [next(chunks)]

    service.process.send_signal(signal.SIGTERM)
    wait_until(lambda: _refuses_connections(service), what="new connections to be refused")
    received.extend(chunks)

    text = "".join(chunk.choices[0].delta.content or "" for chunk in received if chunk.choices)
    assert text == _PROMPT
    assert received[-1].usage is not None
    assert service.process.wait(timeout=START_SECONDS) == 0
    assert list((service.var_dir / "spool").glob("*.seg")) == []
    _assert_recorded(start_service(), service)


def _refuses_connections(service: LiveService) -> bool:
    address = urlsplit(service.base_url)
    try:
        socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=TIMEOUT_SECONDS).close()
    except ConnectionRefusedError:
        return True
    return False


def _assert_recorded(again: LiveService, before: LiveService) -> None:
    again.project_id, again.api_key = before.project_id, before.api_key
    session = again.manage("sessions/drained").json()
    assert session["request_count"] == 1
    assert session["error_count"] == 0
    assert again.stop() == 0


def test_stop__drain_time_over__ends_anyway(start_service: StartService) -> None:
    service = start_service({"DRAIN_SECONDS": "1"})
    stream = service.openai(max_retries=0).chat.completions.create(
        model="sandbox/hang-mid-stream", messages=[{"role": "user", "content": "Hello there, my friend"}], stream=True
    )
    next(iter(stream))

    assert service.stop() == 0
