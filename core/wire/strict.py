"""Type checks of JSON values, by the kind of their field.

DRF's own fields also convert `"5"`, `"yes"`, `1` and `true`, and store a number as its text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework import serializers

Field = serializers.Field[Any, Any, Any, Any]
Problem = Mapping[Any, Any] | Sequence[str]

_TEXT, _WHOLE, _NUMBER = "Must be a text.", "Must be a whole number.", "Must be a finite number."
_LIST, _OBJECT = "Must be a list.", "Must be an object."

# The first kind that a field belongs to decides. A field of another kind checks its values itself.
_KINDS: tuple[tuple[type[Any] | tuple[type[Any], ...], tuple[type, ...], str], ...] = (
    (serializers.BooleanField, (bool,), "Must be true or false."),
    ((serializers.ListField, serializers.ListSerializer), (list,), _LIST),
    ((serializers.DictField, serializers.BaseSerializer), (dict,), _OBJECT),
    (serializers.IntegerField, (int,), _WHOLE),
    (serializers.FloatField, (int, float), _NUMBER),
    # Amounts of money arrive as decimal texts or as numbers (docs/api.md#bodies).
    (serializers.DecimalField, (str, int, float), "Must be a decimal number."),
    ((serializers.CharField, serializers.UUIDField, serializers.DateTimeField), (str,), _TEXT),
)


def wrong_type(field: Field, value: Any) -> Problem | None:
    """Returns the problem by place inside lists and objects.

    Returns None if the kind is right, and for null, which the field decides about.
    """
    if value is None:
        return None
    if isinstance(field, serializers.ChoiceField):
        choice_types = {type(choice) for choice in field.choices}
        return None if type(value) in choice_types else [_TEXT if str in choice_types else _WHOLE]
    for kind, types, message in _KINDS:
        if isinstance(field, kind):
            return _inner(field, value) if _is_one(value, types) else [message]
    return None


def _is_one(value: Any, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in types
    # JSON integers have any length; as a double they may be infinite.
    return isinstance(value, types) and (float not in types or isinstance(value, str) or _is_finite(value))


def _is_finite(number: Any) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _inner(field: Field, value: Any) -> Problem | None:
    if isinstance(field, serializers.ListField):
        members = enumerate(value)
    elif isinstance(field, serializers.DictField):
        members = value.items()
    else:
        return None
    found = {place: wrong_type(field.child, item) for place, item in members}
    return {place: problem for place, problem in found.items() if problem} or None
