from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypedDict
from uuid import UUID

from analytics.dashboards.questions import ChartQuestion, check_subjects
from analytics.figures.query import MAX_TOP, series_of, values_of
from analytics.models import ChartKind
from analytics.parameters.ranges import TimeRange
from analytics.presenters.spend import names_of, range_before
from analytics.queries.dimensions import Dimension
from analytics.queries.usage import Interval


class ChartRow(TypedDict):
    key: str
    name: str
    values: Sequence[float | None]


class ChartSeries(ChartRow):
    figure: str


class _OverTime(TypedDict):
    interval: Interval | None
    starts: Sequence[datetime]
    series: Sequence[ChartSeries]


class ChartData(_OverTime):
    """The values of a chart: over time in `starts` and `series`, or one row for each key with the values of all
    `figures`. `previous` has the values of the range before, for a single figure."""

    start_date: datetime
    end_date: datetime
    figures: Sequence[str]
    rows: Sequence[ChartRow]
    previous: Sequence[float | None] | None


def chart_data(project_id: UUID, kind: ChartKind, question: ChartQuestion, time_range: TimeRange) -> ChartData:
    """Raises ValidationError if a figure or a subject of the filters does not exist, and the errors of the store."""
    question.check(kind)
    check_subjects(project_id, question)
    data: ChartData = {
        "start_date": time_range.start,
        "end_date": time_range.end,
        "figures": question.figures,
        "interval": None,
        "starts": [],
        "series": [],
        "rows": [],
        "previous": None,
    }
    if is_over_time(kind, question):
        return {**data, **_over_time(project_id, question, time_range)}
    rows = values_of(project_id, question.query, question.figures, time_range, limit=MAX_TOP)
    names = _names(project_id, question, [row.key for row in rows])
    data["rows"] = [{"key": row.key, "name": names[row.key], "values": row.values} for row in rows]
    if kind is ChartKind.NUMBER:
        before = range_before(time_range, datetime.now(UTC))
        data["previous"] = values_of(project_id, question.query, question.figures, before)[0].values
    return data


def is_over_time(kind: ChartKind, question: ChartQuestion) -> bool:
    return kind in (ChartKind.LINE, ChartKind.BARS) or (kind is ChartKind.TABLE and not question.group_by)


def _over_time(project_id: UUID, question: ChartQuestion, time_range: TimeRange) -> _OverTime:
    found = series_of(project_id, question.query, time_range, figures=question.figures)
    names = _names(project_id, question, [one.key for one in found.series])
    return {
        "interval": found.interval,
        "starts": found.starts,
        "series": [
            {"figure": one.figure, "key": one.key, "name": names[one.key], "values": one.values} for one in found.series
        ],
    }


def _names(project_id: UUID, question: ChartQuestion, keys: Sequence[str]) -> Mapping[str, str]:
    if question.group_by in (Dimension.API_KEY, Dimension.TEAM):
        return names_of(project_id, Dimension(question.group_by), keys)
    return {key: key for key in keys}
