"""Files that are sent as they are read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

from analytics.queries.visible import looked_up


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
