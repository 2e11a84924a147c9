"""The request log as a stream of lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from django.http import StreamingHttpResponse
from rest_framework.request import Request

from analytics.export_lines import export_lines
from analytics.queries.visible import looked_up
from analytics.request_parameters import ExportParameters
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
        """`application/x-ndjson`: one request a line, the oldest first. The last line of one that broke is an error."""
        given = ExportParameters(data=request.query_params.dict())
        filters = given.to_filter()
        lines = export_lines(self.project_id, filters, content=given.validated_data["include_content"])
        ask = partial(looked_up(self.project_id).run, next, lines, b"")
        worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="export")
        try:
            # The first query runs before anything is sent, so that its failure becomes the response's status.
            first = worker.submit(ask).result()
        except BaseException:
            _dismiss(worker)
            raise
        response = StreamingHttpResponse(streamed(first, ask, worker), content_type="application/x-ndjson")
        response.headers["Content-Disposition"] = 'attachment; filename="requests.ndjson"'
        # The header keeps a proxy from buffering the whole stream.
        response.headers["X-Accel-Buffering"] = "no"
        return response


async def streamed(first: bytes, ask: Callable[[], bytes], worker: ThreadPoolExecutor) -> AsyncGenerator[bytes]:
    """`first` and what `ask` returns until that is empty, each asked for when the client has taken the one before.

    They are made by `worker`, one thread of its own. A client that leaves ends it.
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
