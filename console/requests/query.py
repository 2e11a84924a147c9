from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from rest_framework.exceptions import ValidationError

from analytics.parameters.ranges import TimeRange
from analytics.parameters.requests import SEVERAL, ListParameters
from analytics.parameters.values import Given, values_by_name
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_sorting import Position, RequestSort
from core.ui.pages import Visit

# The parameters of every page's address, of a table, and of the request that is shown beside the list.
_OF_PAGES = frozenset({"project", "range", "start", "end", "tz", "panel", "columns", "peek"})
_OF_THE_RANGE = frozenset({"start_date", "end_date"})
_MAX_NAME_CHARACTERS = 100
# Making the fields of a serializer takes milliseconds, and a page asks for their names several times.
_KNOWN = frozenset(ListParameters().fields) - _OF_THE_RANGE


@dataclass(frozen=True, slots=True)
class RequestQuery:
    filters: RequestFilter
    sort: RequestSort
    position: Position | None
    time_range: TimeRange
    # The filters as they stand in the address.
    given: Given


class QueryProblem(Exception):
    """The address holds invalid values; `errors` are messages by parameter."""

    def __init__(self, errors: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.errors = errors


def parse_query(visit: Visit, further: Collection[str] = ()) -> RequestQuery:
    """Parses the address within the range of the page; `further` are other allowed parameters. Raises QueryProblem."""
    query = visit.request.GET
    unknown = sorted(set(query) - _KNOWN - _OF_PAGES - set(further))
    problems = {name[:_MAX_NAME_CHARACTERS]: ["There is no such filter."] for name in unknown}
    period = visit.period
    bounds = {"start_date": period.start.isoformat(), "end_date": period.end.isoformat()}
    given = {name: value for name, value in values_by_name(query, SEVERAL).items() if name in _KNOWN}
    parameters = ListParameters(data={**given, **bounds})
    try:
        filters, sort, position = parameters.to_filter(), parameters.to_sort(), parameters.to_position()
    except ValidationError as error:
        raise QueryProblem({**problems, **_messages(error)}) from error
    if problems:
        raise QueryProblem(problems)
    return RequestQuery(filters, sort, position, TimeRange(period.start, period.end), chosen_filters(query))


def chosen_filters(query: QueryDict) -> Given:
    chosen: Given = {}
    for name in sorted((_KNOWN - {"sort", "cursor"}) & set(query)):
        values = [str(value) for value in query.getlist(name) if value]
        if values:
            chosen[name] = values if len(values) > 1 else values[0]
    return chosen


def _messages(error: ValidationError) -> Mapping[str, Sequence[str]]:
    found: Any = error.detail
    return {name: [str(problem) for problem in problems] for name, problems in found.items()}
