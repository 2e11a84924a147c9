"""The request log as a stream of lines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator

from django.http import StreamingHttpResponse
from rest_framework.request import Request

from analytics.export_lines import export_lines
from analytics.request_parameters import ExportParameters
from core.views import ProjectAPIView

logger = logging.getLogger("analytics.export")


class RequestsExportView(ProjectAPIView):
    def get(self, request: Request) -> StreamingHttpResponse:
        """`application/x-ndjson`: one request a line, the oldest first. The last line of one that broke is an error."""
        given = ExportParameters(data=request.query_params.dict())
        wanted = given.wanted()
        lines = export_lines(self.project_id, wanted, content=given.validated_data["include_content"])
        # The first question is asked before anything is sent, so that its failure is a status.
        first = next(lines, b"")
        response = StreamingHttpResponse(_streamed(first, lines), content_type="application/x-ndjson")
        response.headers["Content-Disposition"] = 'attachment; filename="requests.ndjson"'
        # A proxy that collects the stream would hold all of it.
        response.headers["X-Accel-Buffering"] = "no"
        return response


async def _streamed(first: bytes, lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Asks for the next chunk when the client has taken the last one; a client that leaves ends it between chunks."""
    chunk = first
    while chunk:
        yield chunk
        chunk = await asyncio.to_thread(next, lines, b"")
