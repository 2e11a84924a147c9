from __future__ import annotations

from typing import Any

from rest_framework import serializers

from analytics.models import BAD_FEEDBACK
from analytics.parameters.common import SessionParameters
from analytics.parameters.requests import CostField
from analytics.queries.session_cursors import SessionCursor, WholeSessionFilter, parse_session_cursor

FEEDBACK = {"any": (1, 2, 3, 4, 5), "good": (4, 5), "bad": BAD_FEEDBACK}


class SessionListParameters(SessionParameters):
    """`feedback` keeps sessions that were given some score: `good` is 4 or 5, `bad` is 1 or 2."""

    feedback = serializers.ChoiceField(required=False, choices=list(FEEDBACK))
    min_cost_usd = CostField()
    max_cost_usd = CostField()
    cursor = serializers.CharField(required=False, max_length=60)

    def validate_cursor(self, value: str) -> SessionCursor:
        cursor = parse_session_cursor(value)
        if cursor is None:
            raise serializers.ValidationError("Must be the cursor of a page of this list.")
        return cursor

    def to_whole_filter(self) -> tuple[WholeSessionFilter, SessionCursor | None]:
        sessions = self.to_filter()
        given: dict[str, Any] = self.validated_data
        found = WholeSessionFilter(
            sessions=sessions,
            min_cost_usd=given.get("min_cost_usd"),
            max_cost_usd=given.get("max_cost_usd"),
            feedback=FEEDBACK.get(given.get("feedback", ""), ()),
        )
        return found, given.get("cursor")
