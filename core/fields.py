"""Serializer fields that several apps use."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework import serializers
from typing_extensions import override

_DATE_ONLY = re.compile(r"\d{4}-\d{2}-\d{2}")
# A "+00:00" that the client did not percent-encode arrives with a space.
_LOST_PLUS = re.compile(r"(T.*) (\d{2}:?\d{2})$")
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


class TimeField(serializers.DateTimeField):
    """A time in ISO 8601, UTC without an offset. A date alone is its first instant, or its last with `end_of_day`."""

    default_error_messages = {
        "invalid": "Must be a time such as 2026-11-22T08:00:00Z, or a date alone such as 2026-11-22."
    }

    def __init__(self, *, end_of_day: bool = False, **options: Any) -> None:
        self._end_of_day = end_of_day
        super().__init__(default_timezone=UTC, **options)

    @override
    def to_internal_value(self, value: Any) -> datetime:
        if not isinstance(value, str):  # A JSON body may hold a value of any type here.
            self.fail("invalid")
        try:
            found = super().to_internal_value(_LOST_PLUS.sub(r"\1+\2", value)).astimezone(UTC)
        except OverflowError:
            self.fail("overflow")
        if not _EARLIEST <= found < _LATEST:
            self.fail("overflow")
        if self._end_of_day and _DATE_ONLY.fullmatch(value):
            return found + timedelta(days=1, microseconds=-1)
        return found


class NumberField(serializers.FloatField):
    """A JSON number that is finite; neither a boolean nor a text."""

    @override
    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool | str) or (isinstance(data, float) and not math.isfinite(data)):
            self.fail("invalid")
        return super().to_internal_value(data)
