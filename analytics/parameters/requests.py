"""The parameters of the request log, its export and its search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analytics.parameters.common import OperationField, RangeParameters
from analytics.parameters.request_cursors import MAX_CURSOR_CHARACTERS, decode_cursor
from analytics.parameters.values import ValuesField, values_by_name
from analytics.queries.request_filters import RequestFilter, RequestSignal
from analytics.queries.request_sorting import Position, RequestSort
from analytics.queries.search import SearchFilter
from analytics.queries.search_terms import parse
from analytics.queries.usage import Interval
from analytics.request_log.record import Outcome
from core.wire.fields import TimeField
from core.wire.serializers import BodySerializer

MAXIMUM_QUERY = 1_000
MAXIMUM_TERMS = 20
MAXIMUM_RESULTS = 1_000

_MAX_32, _MAX_64 = 2**32 - 1, 2**63 - 1


class _Text(serializers.CharField):
    """A text that clients choose, compared unchanged; an empty one is no filter."""

    def __init__(self) -> None:
        super().__init__(required=False, allow_blank=True, trim_whitespace=False, max_length=1024)


class _Number(serializers.IntegerField):
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


_SEVERAL: Mapping[str, Callable[[], serializers.Field[Any, Any, Any, Any]]] = {
    "session_id": _Text,
    "user_id": _Text,
    "outcome": lambda: serializers.ChoiceField(choices=[str(outcome) for outcome in Outcome]),
    "status_code": partial(_Number, 999),
    "source": _Text,
    "operation": OperationField,
    "provider": _Text,
    "model": _Text,
    "requested_model": _Text,
    "error_type": _Text,
    "error_code": _Text,
    "prompt_config_id": serializers.UUIDField,
    "prompt_version": _Number,
    "rollout_id": serializers.UUIDField,
    "variant": _Text,
    "client_request_id": _Text,
    "api_key_id": partial(_Number, _MAX_64),
    "team_id": partial(_Number, _MAX_64),
    "deployment": _Text,
    "language": _Text,
    "signal": lambda: serializers.ChoiceField(choices=[str(signal) for signal in RequestSignal]),
    "metadata": _Metadata,
}
_NOT = "not_"
SEVERAL = frozenset({*_SEVERAL, *(f"{_NOT}{name}" for name in _SEVERAL)})
"""The filters that may be given several times: of each a request has to have one value, and none of those of `not_`."""


class RequestParameters(RangeParameters):
    min_latency_ms = _Number()
    max_latency_ms = _Number()
    min_cost_usd = CostField()
    max_cost_usd = CostField()
    min_ttft_ms = _Number()
    max_ttft_ms = _Number()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        values = {name: ValuesField(make()) for name, make in _SEVERAL.items()}
        others = {f"{_NOT}{name}": ValuesField(make()) for name, make in _SEVERAL.items()}
        return {**values, **others, **super().get_fields()}

    def to_internal_value(self, data: Any) -> Any:
        return super().to_internal_value(values_by_name(data, SEVERAL) if isinstance(data, Mapping) else data)

    def to_filter(self) -> RequestFilter:
        self.is_valid(raise_exception=True)
        given: dict[str, Any] = dict(self.validated_data)
        values = {name: value for name, value in given.items() if name in RequestFilter.__dataclass_fields__}
        excluded = {name: given[f"{_NOT}{name}"] for name in _SEVERAL if given.get(f"{_NOT}{name}")}
        return RequestFilter(**values, excluded=excluded, start=given.get("start_date"), end=given.get("end_date"))


class ListParameters(RequestParameters):
    """The parameters of the list. A cursor comes from a link of the list and belongs to one order."""

    sort = serializers.ChoiceField(required=False, choices=[str(sort) for sort in RequestSort])
    cursor = serializers.CharField(required=False, max_length=MAX_CURSOR_CHARACTERS)

    def to_sort(self) -> RequestSort:
        self.is_valid(raise_exception=True)
        return RequestSort(self.validated_data.get("sort", RequestSort.NEWEST))

    def to_position(self) -> Position | None:
        """Returns the place at which the page begins; None for the beginning of the list."""
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
        """Returns the words and quoted parts of the query."""
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
        """Returns the filter of the search and the maximum number of results."""
        self.is_valid(raise_exception=True)
        values = self.validated_data
        filters = SearchFilter(
            terms=values["query"],
            model=values.get("model", ""),
            operation=values.get("operation", ""),
            user_id=values.get("user_id", ""),
            session_id=values.get("session_id", ""),
            start=values.get("start_time"),
            end=values.get("end_time"),
        )
        return filters, values["limit"]


def filter_text(query: QueryDict) -> str:
    """Returns the part of an address's query that filters requests, without its range of time."""
    known = RequestParameters().fields.keys() - {"start_date", "end_date"}
    return urlencode([(name, value) for name, values in query.lists() for value in values if name in known and value])
