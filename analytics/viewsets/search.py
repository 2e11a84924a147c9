"""The endpoint of the text search in the request history."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.requests import SearchBody
from analytics.presenters.search import search_texts
from analytics.wire.search import SearchResults
from core.api.viewsets import ProjectViewSet
from core.openapi import operation


class SearchViewSet(ProjectViewSet):
    @operation("search", "Search prompts and completions", body=SearchBody, answer=SearchResults)
    def create(self, request: Request) -> Response:
        """The newest matches come first. For older ones send the same request with `end_time` before the time of the
        last match."""
        filters, limit = SearchBody(data=request.data).to_filter_and_limit()
        return Response(search_texts(self.project_id, filters, limit))
