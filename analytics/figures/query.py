from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from analytics.figures.filters import MAX_NAME_CHARACTERS, Filters, figure_named, groups_of, parse_filters
from analytics.figures.registry import Figure, FigureSource
from analytics.parameters.ranges import TimeRange
from analytics.parameters.requests import RequestParameters
from analytics.presenters.metrics import interval_of
from analytics.queries.measures import METADATA, MeasuredRow, Scope, measure, measure_intervals
from analytics.queries.score_measures import ScoreScope, measure_score_intervals, measure_scores
from analytics.queries.usage import Interval, list_beginnings
from core.errors import ValidationError
from core.keys.services import METADATA_PREFIX

MAX_TAG_CHARACTERS = 64
_FIELDS = ("figure", "group_by", "tag", "filters")
DEFAULT_TOP, MAX_TOP = 5, 20
# A series has at most this many intervals, those at the end of its range.
MAX_INTERVALS = 1_000

Values = Sequence[float | None]


@dataclass(frozen=True)
class FigureQuery:
    """A figure of the requests or scores that match `filters`, split by `group_by` unless that is empty.

    `filters` are those of `listRequests` or of the figures about scores, by name, as in a URL: a text, or a list of
    texts for a repeated one. `tag` is the name of the metadata when `group_by` is "metadata".
    """

    figure: str
    group_by: str = ""
    filters: Filters = field(default_factory=dict)
    tag: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"figure": self.figure, "group_by": self.group_by, "tag": self.tag, "filters": dict(self.filters)}

    @classmethod
    def from_json(cls, given: Any) -> FigureQuery:
        """Raises ValidationError, which names the field, also if a figure, group or filter does not exist."""
        if not isinstance(given, Mapping):
            raise ValidationError.of_field("query", "Must be an object.")
        for name in given:
            if name not in _FIELDS:
                raise ValidationError.of_field(str(name)[:MAX_NAME_CHARACTERS], "There is no such field.")
        query = cls(
            figure=_text(given, "figure"),
            group_by=_text(given, "group_by"),
            filters=_texts(given.get("filters", {})),
            tag=_text(given, "tag"),
        )
        query.check()
        return query

    def check(self) -> None:
        figure = figure_named(self.figure)
        if self.group_by and self.group_by not in groups_of(figure):
            there_are = ", ".join(groups_of(figure))
            raise ValidationError.of_field("group_by", f"{figure.label} has no such group. There are: {there_are}.")
        if (self.group_by == METADATA) != bool(self.tag):
            raise ValidationError.of_field(
                "tag", "Is the name of the metadata to split by, which belongs to that group alone."
            )
        if len(self.tag) > MAX_TAG_CHARACTERS:
            raise ValidationError.of_field("tag", f"Has more than {MAX_TAG_CHARACTERS} characters.")
        parse_filters(figure, self.filters)


def _text(given: Mapping[Any, Any], name: str) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise ValidationError.of_field(name, "Must be a text.")
    return value


def _texts(given: Any) -> Filters:
    if not isinstance(given, Mapping):
        raise ValidationError.of_field("filters", "Must be an object.")
    found: dict[str, str | list[str]] = {}
    for name, value in given.items():
        values = [one for one in (value if isinstance(value, list) else [value]) if one != ""]
        if any(isinstance(one, bool) or not isinstance(one, str | int | float) for one in values):
            raise ValidationError.of_field(f"filters.{str(name)[:MAX_NAME_CHARACTERS]}", "Must be a text or a number.")
        if values:
            found[str(name)] = [str(one) for one in values] if len(values) > 1 else str(values[0])
    return found


@dataclass(frozen=True)
class KeyValues:
    key: str
    values: Values


@dataclass(frozen=True)
class Series:
    """One value for each interval; None if there was nothing to measure."""

    figure: str
    key: str
    values: Values


@dataclass(frozen=True)
class SeriesOverTime:
    interval: Interval
    starts: Sequence[datetime]
    series: Sequence[Series]


def value_of(project_id: UUID, query: FigureQuery, time_range: TimeRange) -> float | None:
    """Ignores `group_by`. Returns None with nothing to measure.

    Raises ValidationError, and the errors of the analytics store.
    """
    [total] = values_of(project_id, replace(query, group_by="", tag=""), [query.figure], time_range)
    return total.values[0]


def values_of(
    project_id: UUID, query: FigureQuery, figures: Sequence[str], time_range: TimeRange, *, limit: int = MAX_TOP
) -> list[KeyValues]:
    """Returns `figures`, all of one source, instead of `query.figure`: for the keys with the largest first figure, or
    in total without a group.

    Raises as `value_of` does.
    """
    named = _figures(figures)
    rows = _keys(project_id, query, named, time_range, limit)
    if not rows and not query.group_by:
        return [KeyValues("", _without_any(named))]
    return [KeyValues(row.key, _known(row.values)) for row in rows]


def series_of(
    project_id: UUID,
    query: FigureQuery,
    time_range: TimeRange,
    *,
    figures: Sequence[str] = (),
    interval: Interval | None = None,
    top: int = DEFAULT_TOP,
) -> SeriesOverTime:
    """Returns `figures`, by default `query.figure`: a series for each of the `top` keys of a group.

    Without `interval` the length of the range decides. Raises as `value_of` does.
    """
    named = _figures(figures or [query.figure])
    chosen = interval or interval_of(time_range)
    end = max(time_range.start, min(time_range.end, datetime.now(UTC)))
    starts = list_beginnings(time_range.start, end, chosen, limit=MAX_INTERVALS)
    shown = TimeRange(max(time_range.start, starts[0]), end)
    keys = [""]
    if query.group_by:
        keys = [row.key for row in _keys(project_id, query, named, shown, top)]
    rows = _measure(project_id, query, named, shown, chosen, keys=keys if query.group_by else None) if keys else []
    by_place = {(row.key, row.start): _known(row.values) for row in rows}
    nothing = _without_any(named)
    series = [
        Series(figure.name, key, [by_place.get((key, start), nothing)[place] for start in starts])
        for key in keys
        for place, figure in enumerate(named)
    ]
    return SeriesOverTime(chosen, starts, series)


def _figures(names: Sequence[str]) -> list[Figure]:
    named = [figure_named(name) for name in names]
    if len({figure.source for figure in named}) > 1:
        raise ValidationError.of_field("figure", "Figures about requests and about scores do not go together.")
    return named


def _keys(
    project_id: UUID, query: FigureQuery, figures: Sequence[Figure], time_range: TimeRange, limit: int
) -> list[MeasuredRow]:
    """Leaves out keys that add nothing to a sum, and success among error codes. Largest first figure first."""
    rows = _measure(project_id, query, figures, time_range, None, limit=limit)
    return [row for row in rows if row.values[0] or not (query.group_by and figures[0].is_sum)]


def _measure(
    project_id: UUID,
    query: FigureQuery,
    figures: Sequence[Figure],
    time_range: TimeRange,
    interval: Interval | None,
    *,
    keys: Sequence[str] | None = None,
    limit: int = 1,
) -> list[MeasuredRow]:
    query.check()
    names = [figure.name for figure in figures]
    if figures[0].source is FigureSource.SCORES:
        scores = _score_scope(project_id, query, time_range)
        if interval is None:
            return measure_scores(scores, names, limit=limit)
        return measure_score_intervals(scores, names, interval, keys=keys)
    scope = _scope(project_id, query, time_range)
    if interval is None:
        return measure(scope, names, limit=limit)
    return measure_intervals(scope, names, interval, keys=keys)


def _scope(project_id: UUID, query: FigureQuery, time_range: TimeRange) -> Scope:
    parameters = parse_filters(figure_named(query.figure), query.filters)
    if not isinstance(parameters, RequestParameters):
        raise ValidationError.of_field("figure", "Is not a figure about requests.")
    tag = f"{METADATA_PREFIX}{query.tag}" if query.tag else ""
    return Scope(project_id, time_range.start, time_range.end, parameters.to_filter(), query.group_by, tag)


def _score_scope(project_id: UUID, query: FigureQuery, time_range: TimeRange) -> ScoreScope:
    filters: Mapping[str, Any] = parse_filters(figure_named(query.figure), query.filters).validated_data
    return ScoreScope(project_id, time_range.start, time_range.end, dict(filters), query.group_by)


def _known(values: Sequence[float]) -> Values:
    return [value if math.isfinite(value) else None for value in values]


def _without_any(figures: Sequence[Figure]) -> Values:
    return [0.0 if figure.is_sum else None for figure in figures]
