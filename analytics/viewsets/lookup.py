"""The endpoint that says what an id names."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.presenters.lookup import lookup
from analytics.wire.lookup import LookupResults
from core.lookup.registry import MAX_CHARACTERS
from core.openapi import operation
from core.views import ProjectAPIView
from core.wire.parameters import Parameters


class LookupParameters(Parameters):
    q = serializers.CharField(required=False, max_length=MAX_CHARACTERS)


class LookupView(ProjectAPIView):
    @operation("lookup", "Find what an id names", query=[LookupParameters], answer=LookupResults)
    def get(self, request: Request) -> Response:
        """The requests, sessions, users, API keys, prompts and rollouts that have this id or, of the last three, this
        name or the beginning of this key; nothing without `q`. Keys are
        found for administrators."""
        given = LookupParameters(data=request.query_params.dict())
        given.is_valid(raise_exception=True)
        return Response(lookup(self.project_id, given.validated_data.get("q", ""), self.access.rights))
