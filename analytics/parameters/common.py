from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from rest_framework import serializers
from rest_framework.request import Request

from analytics.queries.request_cursor import RequestCursor, parse_cursor
from analytics.queries.session_filters import SessionFilter
from analytics.request_log.record import Operation
from core.errors import ValidationError
from core.wire.parameters import Parameters, RangeParameters

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Filter = TypeVar("Filter", bound=DataclassInstance)


class OperationField(serializers.ChoiceField):
    """The filter by the client protocol of requests."""

    def __init__(self) -> None:
        super().__init__(required=False, choices=[str(operation) for operation in Operation])


class OperationParameters(Parameters):
    operation = OperationField()


def parse_operation(request: Request) -> str:
    given = OperationParameters(data=request.query_params.dict())
    given.is_valid(raise_exception=True)
    return str(given.validated_data.get("operation", ""))


def filter_of(kind: type[Filter], values: Mapping[str, Any], **more: Any) -> Filter:
    """Returns the filter that has the values of its fields' names, and `more`, of the range of time of the values."""
    named = {name: value for name, value in values.items() if name in kind.__dataclass_fields__}
    return kind(**{"start": values.get("start_date"), "end": values.get("end_date"), **named, **more})


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
        return filter_of(SessionFilter, self.validated_data)


class CursorParameters(Parameters):
    """`cursor` is the place in a list of requests where the page before ended, as the list's `next_cursor` has it."""

    cursor = serializers.CharField(required=False, allow_blank=True, max_length=60)

    def validate_cursor(self, value: str) -> RequestCursor:
        cursor = parse_cursor(value)
        if cursor is None:
            raise serializers.ValidationError("Must be the next_cursor of a page of this list.")
        return cursor


def require_id(name: str, value: str, max_length: int) -> None:
    """Raises ValidationError for an id that cannot be stored: too long, or with a NUL, which no database accepts."""
    if len(value) > max_length:
        problem = f"Has more than {max_length} characters."
    elif "\x00" in value:
        problem = "Null characters are not allowed."
    else:
        return
    raise ValidationError.of_field(name, problem)
