"""Serializer fields of the gateway's bodies: money, and lists of names."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from typing_extensions import override

MONEY_PLACES = 10
# The decimal digits that a double, and so a JSON number in most clients, carries without loss.
MONEY_DIGITS = 15


@extend_schema_field({"type": "number", "minimum": 0})
class MoneyField(serializers.Field[Decimal, Any, float, Any]):
    """US dollars as a JSON number, from 0 to `max_value`."""

    default_error_messages = {
        "invalid": "A valid number is required.",
        "range": "Must be from 0 to {most}.",
        "digits": "At most {places} decimal places and {digits} digits in all.",
    }

    def __init__(self, *, max_value: int, **options: Any) -> None:
        self.max_value = max_value
        super().__init__(**options)

    @override
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
            self.fail("range", most=self.max_value)
        exponent = amount.normalize().as_tuple().exponent
        if len(amount.normalize().as_tuple().digits) > MONEY_DIGITS or (
            isinstance(exponent, int) and -exponent > MONEY_PLACES
        ):
            self.fail("digits", places=MONEY_PLACES, digits=MONEY_DIGITS)
        return amount

    @override
    def to_representation(self, value: Decimal) -> float:
        return float(value)


class NameListField(serializers.ListField):
    """A list of different texts, none of them blank."""

    child = serializers.CharField(max_length=200)

    @override
    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            self.fail("not_a_list", input_type=type(data).__name__)
        names = super().to_internal_value(data)
        if len(set(names)) != len(names):
            raise serializers.ValidationError("A name stands there twice.")
        return names
