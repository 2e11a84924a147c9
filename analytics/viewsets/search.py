"""The endpoints of the text search in the request history, and of what an id names."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.requests import SearchBody
from analytics.presenters.search import lookup, search_texts
from analytics.wire.search import LookupResults, SearchResults
from core.api.viewsets import ProjectViewSet
from core.lookup.registry import MAX_CHARACTERS
from core.openapi import operation
from core.wire.parameters import Parameters


class SearchViewSet(ProjectViewSet):
    @operation("search", "Search prompts and completions", body=SearchBody, answer=SearchResults)
    def create(self, request: Request) -> Response:
        """The newest matches come first. For older ones send the same request with `end_time` before the time of the
        last match."""
        filters, limit = SearchBody(data=request.data).to_filter_and_limit()
        return Response(search_texts(self.project_id, filters, limit))


class LookupParameters(Parameters):
    q = serializers.CharField(required=False, max_length=MAX_CHARACTERS)


class LookupViewSet(ProjectViewSet):
    @operation("lookup", "Find what an id names", query=[LookupParameters], answer=LookupResults)
    def list(self, request: Request) -> Response:
        """The requests, sessions, users, API keys, prompts and rollouts that have this id or, of the last three, this
        name or the beginning of this key; nothing without `q`. Keys are
        found for administrators."""
        given = self.valid_query(LookupParameters)
        return Response(lookup(self.project_id, given.validated_data.get("q", ""), self.access.rights))
