from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponseBadRequest
from django.http.response import HttpResponseBase

from analytics.exports.lines import export_lines, streamed_file
from analytics.exports.spreadsheet import export_table
from console.requests.query import QueryProblem, parse_query
from core.errors import ApplicationError
from core.ui.pages import Page, Visit

_FORMAT = "format"


class RequestsExportPage(Page):
    name = "analytics_requests_export"
    route = "analytics/requests/export/"
    title = "Export of requests"
    parent = "analytics_requests_changelist"

    def _page(self, visit: Visit, route: Mapping[str, Any]) -> HttpResponseBase:
        query = visit.request.GET.copy()
        is_table = query.pop(_FORMAT, ["jsonl"])[-1:] == ["csv"]
        visit.request.GET = query  # type: ignore[assignment]  # a copy is a query as well
        try:
            filters, project_id = parse_query(visit).filters, visit.project.pk
            if is_table:
                return streamed_file(
                    project_id, export_table(project_id, filters), "text/csv; charset=utf-8", "requests.csv"
                )
            lines = export_lines(project_id, filters, content=False)
            return streamed_file(project_id, lines, "application/x-ndjson", "requests.jsonl")
        except QueryProblem as problem:
            texts = [f"{name}: {text}" for name, found in problem.errors.items() for text in found]
            return HttpResponseBadRequest("\n".join(texts), content_type="text/plain; charset=utf-8")
        except ApplicationError as error:
            return self.render(visit, [], problem=error.message)
