from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from django.http import QueryDict
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analytics.parameters.common import OperationField, filter_of
from analytics.parameters.values import ValuesField, values_by_name
from analytics.queries.request_filters import EXCLUDABLE, RequestFilter, RequestSignal
from analytics.queries.request_sorting import Position, RequestSort
from analytics.queries.search import SearchFilter
from analytics.queries.search_terms import parse
from analytics.queries.usage import Interval
from analytics.request_log.record import Outcome
from core.wire.fields import TimeField
from core.wire.parameters import RangeParameters
from core.wire.serializers import BodySerializer

MAX_CURSOR_CHARACTERS = 300


class _Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    sort: RequestSort
    value: Decimal
    ts: datetime
    request_id: UUID
    backward: bool


def encode_cursor(sort: RequestSort, position: Position) -> str:
    cursor = _Cursor(sort, position.value, position.ts, position.request_id, position.backward)
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def decode_cursor(text: str, sort: RequestSort) -> Position:
    """Decodes a cursor. Raises DRF's ValidationError unless it is the cursor of a list in this order."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        cursor = msgspec.msgpack.decode(raw, type=_Cursor)
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise serializers.ValidationError({"cursor": "Must be the cursor of a link of this list."}) from None
    if cursor.sort is not sort:
        raise serializers.ValidationError({"cursor": "Is of a list in another order: leave it out for the first page."})
    if not _is_in_range(cursor):
        raise serializers.ValidationError({"cursor": "Must be the cursor of a link of this list."})
    return Position(cursor.value, cursor.ts, cursor.request_id, cursor.backward)


def _is_in_range(cursor: _Cursor) -> bool:
    """Returns whether the values of a cursor fit the types of their columns."""
    return (
        cursor.value.is_finite()
        and 0 <= cursor.value < 2**32
        and cursor.ts.tzinfo is not None
        and 1970 <= cursor.ts.year < 2200
    )


MAXIMUM_QUERY = 1_000
MAXIMUM_TERMS = 20
MAXIMUM_RESULTS = 1_000

_MAX_32, _MAX_64 = 2**32 - 1, 2**63 - 1


class _Text(serializers.CharField):
    """A text that clients choose, compared unchanged; an empty one is no filter."""

    def __init__(self) -> None:
        super().__init__(required=False, allow_blank=True, trim_whitespace=False, max_length=1024)


class NumberField(serializers.IntegerField):
    def __init__(self, max_value: int = _MAX_32) -> None:
        super().__init__(required=False, min_value=0, max_value=max_value)


@extend_schema_field({"type": "number", "minimum": 0})
class CostField(serializers.DecimalField):
    def __init__(self) -> None:
        super().__init__(required=False, min_value=0, max_digits=18, decimal_places=10)


class _Metadata(serializers.RegexField):
    """An entry of a key's metadata, as `team:search`."""

    def __init__(self) -> None:
        super().__init__(
            r"\A[A-Za-z0-9._-]{1,64}:",
            max_length=1024,
            trim_whitespace=False,
            error_messages={"invalid": "Must be a name and a value, such as team:search."},
        )


_FIELDS: Mapping[str, Callable[[], serializers.Field[Any, Any, Any, Any]]] = {
    "outcome": lambda: serializers.ChoiceField(choices=[str(outcome) for outcome in Outcome]),
    "status_code": partial(NumberField, 999),
    "operation": OperationField,
    "prompt_config_id": serializers.UUIDField,
    "prompt_version": NumberField,
    "rollout_id": serializers.UUIDField,
    "api_key_id": partial(NumberField, _MAX_64),
    "team_id": partial(NumberField, _MAX_64),
    "signal": lambda: serializers.ChoiceField(choices=[str(signal) for signal in RequestSignal]),
    "metadata": _Metadata,
}
_SEVERAL = {name: _FIELDS.get(name, _Text) for name in EXCLUDABLE}
_NOT = "not_"
SEVERAL = frozenset({*_SEVERAL, *(f"{_NOT}{name}" for name in _SEVERAL)})
"""The filters that may be given several times: of each a request has to have one value, and none of those of `not_`."""


class RequestParameters(RangeParameters):
    min_latency_ms = NumberField()
    max_latency_ms = NumberField()
    min_cost_usd = CostField()
    max_cost_usd = CostField()
    min_ttft_ms = NumberField()
    max_ttft_ms = NumberField()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        values = {name: ValuesField(make()) for name, make in _SEVERAL.items()}
        others = {f"{_NOT}{name}": ValuesField(make()) for name, make in _SEVERAL.items()}
        return {**values, **others, **super().get_fields()}

    def to_internal_value(self, data: Any) -> Any:
        return super().to_internal_value(values_by_name(data, SEVERAL) if isinstance(data, Mapping) else data)

    def to_filter(self) -> RequestFilter:
        self.is_valid(raise_exception=True)
        given: dict[str, Any] = dict(self.validated_data)
        excluded = {name: given[f"{_NOT}{name}"] for name in _SEVERAL if given.get(f"{_NOT}{name}")}
        return filter_of(RequestFilter, given, excluded=excluded)


class ListParameters(RequestParameters):
    """The parameters of the list. A cursor comes from a link of the list and belongs to one order."""

    sort = serializers.ChoiceField(required=False, choices=[str(sort) for sort in RequestSort])
    cursor = serializers.CharField(required=False, max_length=MAX_CURSOR_CHARACTERS)

    def to_sort(self) -> RequestSort:
        self.is_valid(raise_exception=True)
        return RequestSort(self.validated_data.get("sort", RequestSort.NEWEST))

    def to_position(self) -> Position | None:
        sort = self.to_sort()
        cursor = self.validated_data.get("cursor")
        return decode_cursor(cursor, sort) if cursor else None


class FacetParameters(RequestParameters):
    without_own = serializers.BooleanField(required=False, default=False)


class HistogramParameters(RequestParameters):
    interval = serializers.ChoiceField(required=False, choices=[str(interval) for interval in Interval])


class ExportParameters(RequestParameters):
    include_content = serializers.BooleanField(required=False, default=False)


class SearchBody(BodySerializer):
    query = serializers.CharField(trim_whitespace=False, max_length=MAXIMUM_QUERY)
    limit = serializers.IntegerField(required=False, default=20, min_value=1, max_value=MAXIMUM_RESULTS)
    model = _Text()
    operation = OperationField()
    user_id = _Text()
    session_id = _Text()
    start_time = TimeField(required=False)
    end_time = TimeField(required=False, end_of_day=True)

    def validate_query(self, value: str) -> list[str]:
        terms = parse(value)
        if not terms:
            raise serializers.ValidationError("Must contain a word to search for.")
        if len(terms) > MAXIMUM_TERMS:
            raise serializers.ValidationError(f"Must hold at most {MAXIMUM_TERMS} words and quoted parts.")
        return terms

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        start, end = attrs.get("start_time"), attrs.get("end_time")
        if start and end and start > end:
            raise serializers.ValidationError({"end_time": "Must not be before start_time."})
        return attrs

    def to_filter_and_limit(self) -> tuple[SearchFilter, int]:
        self.is_valid(raise_exception=True)
        values = self.validated_data
        times = {"start": values.get("start_time"), "end": values.get("end_time")}
        return filter_of(SearchFilter, values, terms=values["query"], **times), values["limit"]


def filter_text(query: QueryDict) -> str:
    known = RequestParameters().fields.keys() - {"start_date", "end_date"}
    return urlencode([(name, value) for name, values in query.lists() for value in values if name in known and value])
