"""Two hosts behind a proxy that asks `/readyz` are restarted one after the other under load: no client sees an
error."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from openai import OpenAI
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.analytics.engine_process import EngineProcess
from tests.live.service import LiveService
from tests.services import START_SECONDS
from tests.waiting import wait_until

CLIENTS = 4
# The streams of the slow model, which restarts must not cut, are longer than the pauses between requests.
_PAUSE_SECONDS = 0.05
_POLL_SECONDS = 0.05


class Proxy:
    """Hands each connection to a ready host, as a layer 4 load balancer does: it copies bytes and parses no HTTP.

    `hosts` are addresses by name; `ready` names those that get connections.
    """

    def __init__(self) -> None:
        self.hosts: dict[str, str] = {}
        self.ready: set[str] = set()
        self.taken: dict[str, int] = {}
        self._turn = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port: int = self._run(self._start())

    def close(self) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_SECONDS)

    async def _start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._polling = asyncio.create_task(self._poll())
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _stop(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _poll(self) -> None:
        while True:
            for name, address in list(self.hosts.items()):
                (self.ready.add if await _is_ready(address) else self.ready.discard)(name)
            await asyncio.sleep(_POLL_SECONDS)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        names = sorted(self.ready)
        if not names:
            writer.close()
            return
        self._turn += 1
        name = names[self._turn % len(names)]
        self.taken[name] = self.taken.get(name, 0) + 1
        there_reader, there_writer = await asyncio.open_connection(*_place(self.hosts[name]))
        with suppress(OSError):
            await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    finally:
        sink.close()


def _place(address: str) -> tuple[str, int]:
    parts = urlsplit(address)
    return str(parts.hostname), int(parts.port or 0)


async def _is_ready(address: str) -> bool:
    try:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection(*_place(address))
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            line = await reader.readline()
            writer.close()
    except (OSError, TimeoutError):
        return False
    return line.startswith(b"HTTP/1.1 200 ")


class Load:
    def __init__(self, port: int, key: str) -> None:
        self.answers = [0] * CLIENTS
        self.errors: list[str] = []
        self._stop = threading.Event()
        self._base_url = f"http://127.0.0.1:{port}/api/gateway/v1"
        self._key = key
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(START_SECONDS)

    def wait_for_more(self, each: int = 2) -> None:
        targets = [answers + each for answers in self.answers]
        wait_until(
            lambda: all(answers >= least for answers, least in zip(self.answers, targets, strict=True)) or self.errors,
            seconds=START_SECONDS,
            what=f"{each} more answers for each client",
        )

    def _run(self, number: int) -> None:
        models = cycle(["sandbox/echo", "sandbox/echo", "sandbox/slow"])
        with OpenAI(base_url=self._base_url, api_key=self._key, max_retries=0) as client:
            while not self._stop.wait(_PAUSE_SECONDS):
                try:
                    whole = _stream(client, next(models)) if number % 2 else _ask(client)
                    if not whole:
                        self.errors.append("an answer was cut short")
                except Exception as error:
                    self.errors.append(repr(error))
                self.answers[number] += 1


_PROMPT = "one two three four five six seven eight"


def _ask(client: OpenAI) -> bool:
    answer = client.chat.completions.create(
        model="sandbox/echo", messages=[{"role": "user", "content": _PROMPT}], stream=False
    )
    return answer.choices[0].message.content == _PROMPT


def _stream(client: OpenAI, model: str) -> bool:
    chunks = client.chat.completions.create(model=model, messages=[{"role": "user", "content": _PROMPT}], stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == _PROMPT


@contextmanager
def new_database() -> Iterator[str]:
    name, server = f"rolling_{uuid4().hex}", os.environ["DATABASE_URL"]
    with psycopg.connect(make_conninfo(server), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            parts = urlsplit(server)
            yield parts._replace(path=f"/{name}").geturl()
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def shared(tmp_path: Path, stores: None) -> Iterator[dict[str, str]]:
    engine = EngineProcess(tmp_path / "clickhouse").wait_until_serving()
    try:
        with new_database() as database_url:
            yield {
                "DATABASE_URL": database_url,
                "REDIS_URL": os.environ["REDIS_URL"],
                "CLICKHOUSE_URL": engine.url_file.read_text(encoding="utf-8").strip(),
                "SECRET_KEY": "of both hosts, and of no other",
                "ENCRYPTION_KEYS": "x4X2bVxV9WqXvGQ2v7dR7M6mCk3l6aVqgJ9y7Qy4Jt8=",
                "WEB_WORKERS": "1",
                # The stop does not wait this long: a second signal ends it once the proxy has seen the host go.
                "PRESTOP_SECONDS": "600",
            }
    finally:
        engine.stop()


def test_rolling_restart__two_hosts_under_load_with_streams__no_client_error(
    tmp_path: Path, shared: dict[str, str]
) -> None:
    running: dict[str, LiveService] = {}

    def start(name: str) -> LiveService:
        running[name] = LiveService(tmp_path / name, shared, ("--without", "celery", "--without", "shipper"))
        return running[name]

    proxy = Proxy()
    load: Load | None = None
    try:
        key = start("a").api_key
        start("b")
        proxy.hosts = {name: service.base_url for name, service in running.items()}
        wait_until(lambda: proxy.ready == {"a", "b"}, what="both hosts in the proxy")
        load = Load(proxy.port, key)
        load.wait_for_more()
        for name in ("a", "b"):
            restart(name, proxy, load, running, start)
        load.wait_for_more()
        load.stop()
        assert load.errors == []
        assert set(proxy.taken) == {"a", "b"}
        assert [service.stop_at_once() for service in running.values()] == [0, 0]
    finally:
        if load is not None:
            load.stop()
        proxy.close()
        for service in running.values():
            service.process.kill()
            service.process.wait()


def restart(
    name: str,
    proxy: Proxy,
    load: Load,
    running: dict[str, LiveService],
    start: Callable[[str], LiveService],
) -> None:
    """Restarts a host as a deployment does: the proxy leaves it out, its requests end, and its successor joins."""
    old = running[name]
    old.process.send_signal(signal.SIGTERM)
    wait_until(lambda: name not in proxy.ready, what=f"{name} to be left out")
    # A client that keeps a connection to the host learns from its next answer that the connection ends.
    load.wait_for_more(3)
    old.process.send_signal(signal.SIGTERM)
    assert old.process.wait(START_SECONDS) == 0
    proxy.hosts[name] = start(name).base_url
    wait_until(lambda: proxy.ready == {"a", "b"}, what=f"{name} to be taken in again")
    load.wait_for_more()
