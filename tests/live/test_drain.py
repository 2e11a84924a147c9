from __future__ import annotations

import signal
import socket
from collections import deque
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import anthropic
import requests
from google import genai
from google.genai import types

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


_MODEL = "sandbox/hang-mid-stream"
_WORDS = "Hello there, my friend"
_MESSAGES: Any = [{"role": "user", "content": _WORDS}]
_CONTENTS = [{"role": "user", "parts": [{"text": _WORDS}]}]
# Path, body, and how the protocol ends a stream.
_STREAMS: dict[str, tuple[str, dict[str, Any], bytes]] = {
    "chat": ("v1/chat/completions", {"messages": _MESSAGES}, b"data: [DONE]\n\n"),
    "completions": ("v1/completions", {"prompt": _WORDS}, b"data: [DONE]\n\n"),
    "responses": ("v1/responses", {"input": _WORDS}, b"}\n\n"),
    "messages": ("v1/messages", {"messages": _MESSAGES, "max_tokens": 99}, b"}\n\n"),
    "gemini": (f"v1beta/models/{_MODEL}:streamGenerateContent?alt=sse", {"contents": _CONTENTS}, b"}\n\n"),
}


def _sdks(service: LiveService) -> dict[str, Iterator[Any]]:
    base, key = f"{service.base_url}/api/gateway", service.api_key
    ours = service.openai(max_retries=0)
    theirs = anthropic.Anthropic(base_url=base, api_key=key, max_retries=0)
    return {
        "chat": iter(ours.chat.completions.create(model=_MODEL, messages=_MESSAGES, stream=True)),
        "completions": iter(ours.completions.create(model=_MODEL, prompt=_WORDS, stream=True)),
        "responses": iter(ours.responses.create(model=_MODEL, input=_WORDS, stream=True)),
        "messages": iter(theirs.messages.create(model=_MODEL, messages=_MESSAGES, max_tokens=99, stream=True)),
        "gemini": _google(base, key),
    }


def _google(base: str, key: str) -> Iterator[Any]:
    options = types.HttpOptions(base_url=base, api_version="v1beta")
    with genai.Client(api_key=key, http_options=options) as client:
        yield from client.models.generate_content_stream(model=_MODEL, contents=_WORDS)


def _opened(service: LiveService, name: str) -> requests.Response:
    path, body, _ = _STREAMS[name]
    headers = {"Authorization": f"Bearer {service.api_key}"}
    url, asked = f"{service.base_url}/api/gateway/{path}", {} if name == "gemini" else {"model": _MODEL, "stream": True}
    return requests.post(url, json=asked | body, headers=headers, stream=True, timeout=START_SECONDS)


def _end(stream: Iterator[Any]) -> tuple[str, str]:
    """Returns the class of what ends the stream, and its text."""
    try:
        (last,) = deque(stream, maxlen=1)
    except Exception as error:
        last = error
    return type(last).__name__, str(last)


def test_stop__drain_time_over__streams_of_every_protocol_end_with_an_error_to_retry(
    start_service: StartService,
) -> None:
    service = start_service({"DRAIN_SECONDS": "4"})
    raw = {name: _opened(service, name) for name in _STREAMS}
    sdks = _sdks(service)
    for stream in sdks.values():
        next(stream)

    service.process.send_signal(signal.SIGTERM)
    sent = {name: answer.content for name, answer in raw.items()}
    raised = {name: _end(stream) for name, stream in sdks.items()}

    assert service.process.wait(timeout=START_SECONDS) == 0
    for name, (_, _, end) in _STREAMS.items():
        assert sent[name].count(b"restarting and could not finish") == 1, (name, sent[name])
        assert sent[name].endswith(end), (name, sent[name])
        assert "restarting and could not finish" in raised[name][1], raised
    assert {name: kind for name, (kind, _) in raised.items()} == {
        "chat": "APIError",
        "completions": "APIError",
        "responses": "ResponseFailedEvent",
        "messages": "APIStatusError",
        "gemini": "ServerError",
    }
    assert "Traceback" not in service.log
    assert "Cancel" not in service.log
    again = start_service()
    again.project_id, again.api_key = service.project_id, service.api_key
    rows = again.manage("requests", outcome="interrupted", error_code="service_restarting").json()["results"]
    assert len(rows) == len(raw) + len(sdks)
    assert all(row["completion_tokens"] for row in rows), rows
