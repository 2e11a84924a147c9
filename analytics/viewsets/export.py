"""The request log as a stream of lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import UUID

from django.http import StreamingHttpResponse
from rest_framework.request import Request

from analytics.exports.lines import export_lines
from analytics.parameters.requests import ExportParameters
from analytics.queries.visible import looked_up
from core.openapi import operation
from core.views import ProjectAPIView


class RequestsExportView(ProjectAPIView):
    @operation(
        "exportRequests",
        "The request log as lines of JSON",
        query=[ExportParameters],
        answer={"type": "string"},
        media_type="application/x-ndjson",
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """The answer is `application/x-ndjson`: one request per line, the oldest first. The last line of an export that
        failed is an error."""
        given = ExportParameters(data=request.query_params.dict())
        filters = given.to_filter()
        lines = export_lines(self.project_id, filters, content=given.validated_data["include_content"])
        return streamed_file(self.project_id, lines, "application/x-ndjson", "requests.ndjson")


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
    response = StreamingHttpResponse(streamed(first, ask, worker), content_type=content_type)
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
