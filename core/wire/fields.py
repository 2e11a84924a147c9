from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

MONEY_PLACES = 10
# The decimal digits that a double, and so a JSON number in most clients, carries without loss.
MONEY_DIGITS = 15

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
    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool | str) or (isinstance(data, float) and not math.isfinite(data)):
            self.fail("invalid")
        return super().to_internal_value(data)


@extend_schema_field({"type": "number", "minimum": 0})
class MoneyField(serializers.Field[Decimal, Any, float, Any]):
    default_error_messages = {
        "invalid": "A valid number is required.",
        "range": "Must be from 0 to {maximum}.",
        "digits": "At most {places} decimal places and {digits} digits in all.",
    }

    def __init__(self, *, max_value: int, **options: Any) -> None:
        self.max_value = max_value
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> Decimal:
        if not isinstance(data, int | float) or isinstance(data, bool):
            self.fail("invalid")
        try:
            amount = Decimal(str(data))
        except InvalidOperation:
            self.fail("invalid")
        if not amount.is_finite():
            self.fail("invalid")
        if not 0 <= amount <= self.max_value:
            self.fail("range", maximum=self.max_value)
        exponent = amount.normalize().as_tuple().exponent
        if len(amount.normalize().as_tuple().digits) > MONEY_DIGITS or (
            isinstance(exponent, int) and -exponent > MONEY_PLACES
        ):
            self.fail("digits", places=MONEY_PLACES, digits=MONEY_DIGITS)
        return amount

    def to_representation(self, value: Decimal) -> float:
        return float(value)


class NameListField(serializers.ListField):
    child = serializers.CharField(max_length=200)

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            self.fail("not_a_list", input_type=type(data).__name__)
        names = super().to_internal_value(data)
        if len(set(names)) != len(names):
            raise serializers.ValidationError("A name occurs twice.")
        return names
