"""Tools that hang, because ClickHouse accepts connections and never answers."""

from __future__ import annotations

import json
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

from tests.agent.chat.playing import headers_of
from tests.agent.chat.test_refusals import assert_refused
from tests.agent.mcp.speaking import PATH, call, content_of, error_code, send, session
from tests.gateway.service import Gateway, GatewayService
from tests.waiting import TIMEOUT_SECONDS


class Silence:
    """Accepts connections and stays silent until `hang_up` is called."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"clickhouse://127.0.0.1:{self._listening.getsockname()[1]}/default"
        self._held: list[socket.socket] = []
        self.silent = True
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                accepted = self._listening.accept()[0]
            except OSError:
                return
            self._held.append(accepted)
            if not self.silent:
                self.hang_up()

    @property
    def callers(self) -> int:
        return len(self._held)

    def hang_up(self) -> None:
        self.silent = False
        while self._held:
            self._held.pop().close()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        self.hang_up()


@contextmanager
def hanging(*, seconds: str) -> Iterator[tuple[Gateway, Silence]]:
    """Uses a separate service: a call whose caller has left still talks to the store."""
    with closing(Silence()) as silence:
        # The store's time limit is longer than that of all tools, because the test is about their callers.
        store_limit = {"CLICKHOUSE_SILENT_SECONDS": "60"}
        settings = {"CLICKHOUSE_URL": silence.url, "AGENT_TOOL_SECONDS": seconds, **store_limit}
        with GatewayService(workers=1, settings=settings) as service:
            yield service.new_project(), silence
            silence.hang_up()
            log = service.log.read_text(errors="replace")
            assert "Traceback" not in log, log[-4000:]


def until_called(gateway: Gateway, silence: Silence) -> None:
    """The worker itself asks the store for its tables when it starts."""
    assert gateway.service.until(lambda: silence.callers > 1, bool)


@contextmanager
def left_alone(gateway: Gateway, silence: Silence) -> Iterator[socket.socket]:
    body = json.dumps(call("list_sessions")).encode()
    lines = [f"POST {PATH} HTTP/1.1", "host: localhost", "content-type: application/json", "accept: application/json"]
    lines += [f"content-length: {len(body)}", *(f"{name}: {value}" for name, value in headers_of(gateway).items())]
    with socket.create_connection(("127.0.0.1", gateway.port)) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        until_called(gateway, silence)
        yield connection


async def test_call__that_hangs__ends_with_an_error() -> None:
    with hanging(seconds="8") as (gateway, _):
        async with session(gateway) as client:
            result = await client.call_tool("list_sessions", {})

            assert error_code(result) == "tool_timeout"
            assert content_of(await client.call_tool("get_project", {}))["id"] == gateway.project_id


def test_client__that_leaves__is_let_go() -> None:
    with hanging(seconds="120") as (gateway, silence):
        service = gateway.service
        with left_alone(gateway, silence):
            pass
        log = service.until(service.log.read_text, lambda text: "mcp.client_left" in text)
        assert "mcp.client_left" in log
        silence.hang_up()

        answer = send(gateway, call("get_project")).json()["result"]

        assert answer["structuredContent"]["id"] == gateway.project_id
        lines = [line for line in service.log.read_text().splitlines() if gateway.project_id in line]
        assert any("tool=get_project" in line for line in lines)
        assert not any("tool=list_sessions" in line for line in lines), log


def test_worker__that_stops__sends_its_callers_on() -> None:
    with hanging(seconds="120") as (gateway, silence), ThreadPoolExecutor(1) as threads:
        answer = threads.submit(send, gateway, call("list_sessions"))
        until_called(gateway, silence)

        gateway.service._children[0].send_signal(signal.SIGTERM)

        assert_refused(answer.result(4 * TIMEOUT_SECONDS), 503, "service_unavailable")
