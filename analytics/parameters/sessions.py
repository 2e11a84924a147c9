from __future__ import annotations

from typing import Any

from rest_framework import serializers

from analytics.models import BAD_FEEDBACK
from analytics.parameters.common import SessionParameters
from analytics.parameters.requests import CostField, NumberField
from analytics.queries.session_cursors import WholeSessionFilter
from analytics.queries.session_sorting import LATEST, SORTS, SessionCursor, parse_session_cursor

FEEDBACK = {"any": (1, 2, 3, 4, 5), "good": (4, 5), "bad": BAD_FEEDBACK}


class SessionListParameters(SessionParameters):
    """`feedback` keeps sessions that were given some score: `good` is 4 or 5, `bad` is 1 or 2. Bounds and `sort` are of
    whole sessions; a minus before the name puts the largest first."""

    feedback = serializers.ChoiceField(required=False, choices=list(FEEDBACK))
    min_cost_usd = CostField()
    max_cost_usd = CostField()
    min_duration_seconds = NumberField()
    max_duration_seconds = NumberField()
    min_request_count = NumberField()
    max_request_count = NumberField()
    min_error_count = NumberField()
    max_error_count = NumberField()
    sort = serializers.ChoiceField(required=False, default=LATEST, choices=SORTS)
    cursor = serializers.CharField(required=False, max_length=80)

    def validate_cursor(self, value: str) -> SessionCursor:
        cursor = parse_session_cursor(value)
        if cursor is None:
            raise serializers.ValidationError("Must be the cursor of a page of this list.")
        return cursor

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        given = super().validate(attrs)
        cursor: SessionCursor | None = given.get("cursor")
        if cursor is not None and cursor.sort != given["sort"]:
            problem = "Is of a list in another order: leave it out for the first page."
            raise serializers.ValidationError({"cursor": problem})
        return given

    def to_whole_filter(self) -> tuple[WholeSessionFilter, str, SessionCursor | None]:
        """Returns the filter, the order and the place in it."""
        sessions = self.to_filter()
        given: dict[str, Any] = self.validated_data
        bounds = {name: value for name, value in given.items() if name.startswith(("min_", "max_"))}
        feedback = FEEDBACK.get(given.get("feedback", ""), ())
        return WholeSessionFilter(sessions, bounds, feedback), given["sort"], given.get("cursor")
