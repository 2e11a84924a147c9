from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.handlers.asgi import ASGIHandler
from django.core.management import CommandError, call_command
from django.http import HttpRequest, StreamingHttpResponse
from django.test import AsyncClient
from rest_framework.test import APIClient

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from analytics.exports.lines import export_lines, streamed
from analytics.queries import export as exporting
from analytics.queries.request_filters import RequestFilter
from analytics.request_log.record import Outcome
from core.models import Project
from tests.analytics.requests.entries import entry
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key, make_project
from tests.store_away import store_away
from tests.waiting import TIMEOUT_SECONDS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "CHUNK_ROWS", 3)
    monkeypatch.setattr(exporting, "_FIRST_PAYLOADS", 2)


@pytest.fixture
def headers(project: Project) -> dict[str, str]:
    _, key = make_key(project)
    return {"authorization": f"Bearer {key}", "x-project-id": str(project.pk)}


def export(headers: dict[str, str], **parameters: str) -> list[dict[str, Any]]:
    async def collect() -> bytes:
        answer = await AsyncClient().get("/api/llm/requests/export", parameters, headers=headers)
        assert isinstance(answer, StreamingHttpResponse)
        assert answer.headers["Content-Type"] == "application/x-ndjson"
        return b"".join([piece async for piece in answer])

    content = async_to_sync(collect)()
    assert content == b"" or content.endswith(b"\n")
    return [json.loads(line) for line in content.splitlines()]


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("count", [0, 1, 3, 4, 10])
def test_export__any_number__is_what_the_list_says_oldest_first(
    headers: dict[str, str], project: Project, spool: Path, count: int
) -> None:
    other = make_project()
    # Pairs of requests have the same time, so that chunks end between two of them.
    store(
        spool,
        *(entry(project, minutes_ago=i // 2, session_id=f"s{i}") for i in range(count)),
        make_entry(),
        entry(other),
    )

    exported = export(headers)
    listed = APIClient().get("/api/llm/requests", {"limit": 1000}, headers=headers).json()["results"]

    assert exported == listed[::-1]
    assert len(exported) == count
    assert export(headers, session_id="s0") == [item for item in exported if item["session_id"] == "s0"]


@pytest.mark.usefixtures("small_chunks")
def test_export__with_content__has_the_bodies(headers: dict[str, str], project: Project, spool: Path) -> None:
    store(
        spool,
        *(entry(project, f"line\nbreak {i}", "é 🙂", minutes_ago=20 - i) for i in range(7)),
        make_entry(project_id=str(project.pk), outcome=Outcome.ERROR),
        make_entry(request=b'{\n"a": 1' + b"0" * 30 + b"}", response=b"\xff", project_id=str(project.pk)),
    )

    exported = export(headers, include_content="true")

    prompts = [line["request"]["messages"][0]["content"] for line in exported[:7]]
    assert prompts == [f"line\nbreak {i}" for i in range(7)]
    assert exported[0]["response"] == {"choices": [{"message": {"role": "assistant", "content": "é 🙂"}}]}
    assert (exported[7]["request"], exported[7]["response"]) == (None, None)
    assert (exported[8]["request"], exported[8]["response"]) == ({"a": 10**30}, "\ufffd")
    assert exported[8]["created_at"] > exported[7]["created_at"]
    assert "request" not in (export(headers))[0]


@pytest.mark.usefixtures("small_chunks")
def test_export__store_leaves_in_the_midst__last_line_is_the_error(
    headers: dict[str, str], project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(spool, *(entry(project, minutes_ago=i) for i in range(7)))
    rows_after, calls = exporting._rows_after, 0

    def failing(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 2:
            raise AnalyticsUnavailableError("The analytics store does not answer.")
        return rows_after(*arguments)

    monkeypatch.setattr(exporting, "_rows_after", failing)

    exported = export(headers)

    assert len(exported) == 7
    assert all("request_id" in line for line in exported[:6])
    assert exported[6]["error"]["code"] == "analytics_unavailable"


def test_export__store_away_from_the_start__503(project: Project, headers: dict[str, str]) -> None:
    with store_away():
        answer = APIClient().get("/api/llm/requests/export", headers=headers)

    assert answer.status_code == 503


@pytest.mark.usefixtures("small_chunks")
def test_export__bodies_beyond_a_querys_memory__come_in_smaller_pieces(
    project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(spool, *(entry(project, minutes_ago=i) for i in range(5)))
    payloads = exporting._payloads

    def limited(project_id: uuid.UUID, rows: Any) -> Any:
        if len(rows) > 1:
            raise AnalyticsLimitError("too much")
        return payloads(project_id, rows)

    monkeypatch.setattr(exporting, "_payloads", limited)

    lines = b"".join(export_lines(project.pk, RequestFilter(), content=True)).splitlines()

    assert len(lines) == 5
    assert all(json.loads(line)["request"] for line in lines)


async def test_export__client_leaves__no_further_piece_is_made() -> None:
    made: list[int] = []

    def lines() -> Iterator[bytes]:
        for number in range(100):
            made.append(number)
            yield b"%d\n" % number

    worker = ThreadPoolExecutor(max_workers=1)
    pieces = streamed(b"first\n", partial(next, lines(), b""), worker)

    assert await anext(pieces) == b"first\n"
    assert made == []
    assert await anext(pieces) == b"0\n"
    await pieces.aclose()

    assert made == [0]
    with pytest.raises(RuntimeError, match="after shutdown"):
        worker.submit(made.clear)


async def test_export__connection_closed__the_server_stops_the_stream() -> None:
    """The request goes through Django's own handler, which ends the stream when the client hangs up."""
    made: list[int] = []
    worker = ThreadPoolExecutor(max_workers=1)

    def lines() -> Iterator[bytes]:
        for number in range(1_000_000):
            made.append(number)
            yield b"%d\n" % number

    class Streaming(ASGIHandler):
        async def get_response_async(self, request: HttpRequest) -> StreamingHttpResponse:
            return StreamingHttpResponse(streamed(b"first\n", partial(next, lines(), b""), worker))

    sent: asyncio.Queue[Any] = asyncio.Queue(maxsize=1)
    messages: asyncio.Queue[Any] = asyncio.Queue()
    messages.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [], "http_version": "1.1"}
    serving = asyncio.create_task(Streaming()(scope, messages.get, sent.put))
    while len(made) < 3:
        await sent.get()
    messages.put_nowait({"type": "http.disconnect"})
    await serving

    assert len(made) < 10
    with pytest.raises(RuntimeError, match="after shutdown"):
        worker.submit(made.clear)


async def test_export__client_leaves_in_the_midst_of_a_query__its_thread_ends_after_it() -> None:
    started, answered = threading.Event(), threading.Event()

    def lines() -> Iterator[bytes]:
        started.set()
        answered.wait(TIMEOUT_SECONDS)
        yield b"late\n"

    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="leaving")
    pieces = streamed(b"first\n", partial(next, lines(), b""), worker)
    await anext(pieces)
    waiting = asyncio.ensure_future(anext(pieces))
    assert await asyncio.to_thread(started.wait, TIMEOUT_SECONDS)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    answered.set()
    for thread in threading.enumerate():
        if thread.name.startswith("leaving"):
            await asyncio.to_thread(thread.join, TIMEOUT_SECONDS)
            assert not thread.is_alive()


def test_export_requests__command__writes_the_same_lines(project: Project, spool: Path, tmp_path: Path) -> None:
    store(spool, *(entry(project, minutes_ago=i, model=f"m{i % 2}") for i in range(4)))
    target = tmp_path / "out.ndjson"

    call_command("export_requests", "--project", str(project.pk), "--content", "--output", str(target))

    assert target.read_bytes() == b"".join(export_lines(project.pk, RequestFilter(), content=True))
    with pytest.raises(CommandError, match="no project"):
        call_command("export_requests", "--project", str(uuid.uuid4()))
