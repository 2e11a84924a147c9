"""The endpoint that says what an id names."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.presenters.lookup import lookup
from analytics.wire.lookup import LookupResults
from core.api.viewsets import ProjectViewSet
from core.lookup.registry import MAX_CHARACTERS
from core.openapi import operation
from core.wire.parameters import Parameters


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
