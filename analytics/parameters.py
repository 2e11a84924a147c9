"""Query parameters of the analytics endpoints."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework import serializers
from typing_extensions import override

from analytics.queries.session_filters import SessionFilter

_DATE_ONLY = re.compile(r"\d{4}-\d{2}-\d{2}")
# A "+00:00" that the client did not percent-encode.
_LOST_PLUS = re.compile(r"(T.*) (\d{2}:?\d{2})$")
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


class TimeField(serializers.DateTimeField):
    """ISO 8601, UTC when no offset is given. A date alone is its first instant, or its last with `end_of_day`."""

    def __init__(self, *, end_of_day: bool = False, **options: Any) -> None:
        self._end_of_day = end_of_day
        super().__init__(default_timezone=UTC, **options)

    @override
    def to_internal_value(self, value: Any) -> datetime:
        if not isinstance(value, str):  # a JSON body can hold anything
            self.fail("invalid", format="YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]")
        try:
            found = super().to_internal_value(_LOST_PLUS.sub(r"\1+\2", value)).astimezone(UTC)
        except OverflowError:
            self.fail("overflow")
        if not _EARLIEST <= found < _LATEST:
            self.fail("overflow")
        if self._end_of_day and _DATE_ONLY.fullmatch(value):
            return found + timedelta(days=1, microseconds=-1)
        return found


class RangeParameters(serializers.Serializer[Any]):
    start_date = TimeField(required=False)
    end_date = TimeField(required=False, end_of_day=True)

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        start, end = attrs.get("start_date"), attrs.get("end_date")
        if start and end and start > end:
            raise serializers.ValidationError({"end_date": "Must not be before start_date."})
        return attrs


# What an answer about a range says of it.
RANGE: dict[str, Any] = {"start_date": datetime, "end_date": datetime}


class SessionParameters(RangeParameters):
    user_id = serializers.CharField(required=False, trim_whitespace=False, allow_blank=True, max_length=1024)
    name_pattern = serializers.CharField(required=False, trim_whitespace=False, allow_blank=True, max_length=1024)

    def validate_name_pattern(self, value: str) -> str:
        # ClickHouse refuses a pattern that ends in the middle of an escape.
        if (len(value) - len(value.rstrip("\\"))) % 2:
            raise serializers.ValidationError("Must not end in a single backslash.")
        return value

    def wanted(self) -> SessionFilter:
        self.is_valid(raise_exception=True)
        values = self.validated_data
        return SessionFilter(
            user_id=values.get("user_id", ""),
            name_pattern=values.get("name_pattern", ""),
            start=values.get("start_date"),
            end=values.get("end_date"),
        )
