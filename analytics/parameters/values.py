from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

MAX_VALUES = 100
_MAX_PARAMETERS = 200
_TEXT: dict[str, Any] = {"type": "string"}

Given = dict[str, str | list[str]]
"""Parameters by name; those that were given several times have lists."""


class ValuesField(serializers.ListField):
    """Values of one parameter, `?name=a&name=b` in a query, a text or a list of them in a body. Empty ones count as
    left out. The value is a tuple."""

    def __init__(self, child: serializers.Field[Any, Any, Any, Any]) -> None:
        super().__init__(child=child, required=False)

    def get_value(self, dictionary: Any) -> Any:
        return dictionary.get(self.field_name, serializers.empty)

    def to_internal_value(self, data: Any) -> tuple[Any, ...]:  # type: ignore[override]  # a tuple can be hashed
        given = [value for value in _several(data) if value != ""]
        if len(given) > MAX_VALUES:
            raise serializers.ValidationError(f"At most {MAX_VALUES} values.")
        # The messages are those of one value: a query has no places of a list that they could name.
        return tuple(dict.fromkeys(self.child.run_validation(value) for value in given))


@extend_schema_field({"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]})
class TextsField(serializers.Field[Any, Any, Any, Any]):
    """A text or a list of texts of a filter in a body, which stays what it is."""

    def __init__(self, max_length: int) -> None:
        super().__init__()
        self._text = serializers.CharField(allow_blank=True, trim_whitespace=False, max_length=max_length)

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, list):
            return [self._text.run_validation(value) for value in data]
        return self._text.run_validation(data)


def parse_parameters(query: str) -> Given:
    found: dict[str, list[str]] = {}
    for name, value in parse_qsl(query.removeprefix("?"), max_num_fields=_MAX_PARAMETERS):
        found.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def values_by_name(data: Any, several: Iterable[str]) -> dict[str, Any]:
    """Returns the parameters of a query or mapping: lists for the names in `several`, and the last value of any
    other.
    """
    lists = set(several)
    if not hasattr(data, "getlist"):
        return dict(data)
    return {name: data.getlist(name) if name in lists else data[name] for name in data}


def _several(data: Any) -> list[Any]:
    return list(data) if isinstance(data, list | tuple) else [data]
