from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

from analytics.queries.export import Exported, export_chunks
from analytics.queries.request_filters import RequestFilter
from analytics.queries.visible import looked_up
from analytics.wire.requests import request_entry, stored_body
from core.errors import ApplicationError
from core.http.exception_handler import error_body, log_unexpected

logger = logging.getLogger("analytics.export")

_encoder = msgspec.json.Encoder()


def request_lines(project_id: UUID, filters: RequestFilter, *, content: bool) -> Iterator[bytes]:
    """Yields pieces of the export, each of whole lines. Raises the errors of `client.query`."""
    count = 0
    for chunk in export_chunks(project_id, filters, content=content):
        yield b"".join(_line(item, content=content) for item in chunk)
        count += len(chunk)
    logger.info("export.finished project_id=%s requests=%d", project_id, count)


def export_lines(project_id: UUID, filters: RequestFilter, *, content: bool) -> Iterator[bytes]:
    """Yields the pieces of `request_lines`. A failure after the first piece becomes the last line of the export.

    That line is `{"error": …}`: the status was sent with the first piece. A failure before it is raised.
    """
    begun = False
    try:
        for piece in request_lines(project_id, filters, content=content):
            begun = True
            yield piece
    except Exception as error:
        if not begun:
            raise
        yield _encoder.encode(error_body(_reported(error, project_id))) + b"\n"


def _reported(error: Exception, project_id: UUID) -> ApplicationError:
    if isinstance(error, ApplicationError):
        logger.warning("export.broken project_id=%s error=%s", project_id, type(error).__name__)
        return error
    log_unexpected(error, f"export of {project_id}")
    return ApplicationError("The service failed unexpectedly.")


def _line(item: Exported, *, content: bool) -> bytes:
    row, payload = item
    entry: dict[str, Any] = {**request_entry(row)}
    if content:
        entry["request"] = stored_body(payload.request) if payload else None
        entry["response"] = stored_body(payload.response) if payload else None
    try:
        return _encoder.encode(entry) + b"\n"
    except OverflowError:
        # Msgspec refuses a number beyond 64 bits, which a body may contain; the standard library writes any.
        text = json.dumps(entry, default=msgspec.to_builtins, ensure_ascii=False, separators=(",", ":"))
        return text.encode() + b"\n"


def streamed_file(project_id: UUID, pieces: Iterator[bytes], content_type: str, filename: str) -> StreamingHttpResponse:
    """Returns a file that is sent as its pieces are read. Raises what the first of them does."""
    ask = partial(looked_up(project_id).run, next, pieces, b"")
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="export")
    try:
        # The first query runs before anything is sent, so that its failure becomes the response's status.
        first = worker.submit(ask).result()
    except BaseException:
        _dismiss(worker)
        raise
    return _as_file(streamed(first, ask, worker), content_type, filename)


def streamed_rows(pieces: Iterator[bytes], content_type: str, filename: str) -> StreamingHttpResponse:
    """Returns a file whose pieces come from the SQL database. Raises what the first of them does; a failure after it
    breaks the connection."""
    return _as_file(_rows(next(pieces, b""), pieces), content_type, filename)


async def _rows(first: bytes, pieces: Iterator[bytes]) -> AsyncGenerator[bytes]:
    piece = first
    while piece:
        yield piece
        # The thread of the request has its connection, which Django lets go of at the end of the request.
        piece = await sync_to_async(partial(next, pieces, b""))()


def _as_file(content: AsyncGenerator[bytes], content_type: str, filename: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(content, content_type=content_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{filename}"'
    # The header keeps a proxy from buffering the whole stream.
    response.headers["X-Accel-Buffering"] = "no"
    return response


async def streamed(first: bytes, ask: Callable[[], bytes], worker: ThreadPoolExecutor) -> AsyncGenerator[bytes]:
    """Yields `first` and the results of `ask` until one is empty; each is requested when the client has taken the one
    before.

    `ask` runs in `worker`, a thread of its own, which ends when the client leaves.
    """
    loop, piece = asyncio.get_running_loop(), first
    try:
        while piece:
            yield piece
            piece = await loop.run_in_executor(worker, ask)
    finally:
        _dismiss(worker)


def _dismiss(worker: ThreadPoolExecutor) -> None:
    """Shuts the worker down without waiting, since it may be in the middle of a query."""
    worker.shutdown(wait=False)
