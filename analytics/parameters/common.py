"""The parameters of queries and paths that several analytics endpoints take."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from analytics.queries.request_cursor import RequestCursor, parse_cursor
from analytics.queries.session_filters import SessionFilter
from analytics.request_log.record import Operation
from core.errors import ValidationError
from core.wire.fields import TimeField
from core.wire.parameters import Parameters


class OperationField(serializers.ChoiceField):
    """The filter by the client protocol of requests."""

    def __init__(self) -> None:
        super().__init__(required=False, choices=[str(operation) for operation in Operation])


class OperationParameters(Parameters):
    operation = OperationField()


def parse_operation(request: Request) -> str:
    """Returns the operation that a URL's query names, empty for none. Raises DRF's ValidationError."""
    given = OperationParameters(data=request.query_params.dict())
    given.is_valid(raise_exception=True)
    return str(given.validated_data.get("operation", ""))


class RangeParameters(Parameters):
    start_date = TimeField(required=False)
    end_date = TimeField(required=False, end_of_day=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        start, end = attrs.get("start_date"), attrs.get("end_date")
        if start and end and start > end:
            raise serializers.ValidationError({"end_date": "Must not be before start_date."})
        return attrs


# The fields in which an answer about a range of time names the range.
RANGE: dict[str, Any] = {"start_date": datetime, "end_date": datetime}


class SessionParameters(RangeParameters):
    operation = OperationField()
    user_id = serializers.CharField(required=False, trim_whitespace=False, allow_blank=True, max_length=1024)
    name_pattern = serializers.CharField(required=False, trim_whitespace=False, allow_blank=True, max_length=1024)

    def validate_name_pattern(self, value: str) -> str:
        # ClickHouse refuses a pattern that ends in the middle of an escape.
        if (len(value) - len(value.rstrip("\\"))) % 2:
            raise serializers.ValidationError("Must not end with a single backslash.")
        return value

    def to_filter(self) -> SessionFilter:
        self.is_valid(raise_exception=True)
        values = self.validated_data
        return SessionFilter(
            user_id=values.get("user_id", ""),
            operation=values.get("operation", ""),
            name_pattern=values.get("name_pattern", ""),
            start=values.get("start_date"),
            end=values.get("end_date"),
        )


class CursorParameters(Parameters):
    """`cursor` is the place in a list of requests where the page before ended, as the list's `next_cursor` has it."""

    cursor = serializers.CharField(required=False, allow_blank=True, max_length=60)

    def validate_cursor(self, value: str) -> RequestCursor:
        cursor = parse_cursor(value)
        if cursor is None:
            raise serializers.ValidationError("Must be the next_cursor of a page of this list.")
        return cursor


def require_id(name: str, value: str, max_length: int) -> None:
    """Refuses what no stored id can be: longer than `max_length` characters, or with a NUL, which no database takes."""
    if len(value) > max_length:
        problem = f"Has more than {max_length} characters."
    elif "\x00" in value:
        problem = "Null characters are not allowed."
    else:
        return
    raise ValidationError.of_field(name, problem)
