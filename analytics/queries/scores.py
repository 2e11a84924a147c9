from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.models import ScoreType
from analytics.queries.groupings import GROUPINGS, columns_of, row_of
from core.wire.shown import seen_as

LABELS_SHOWN = 50


@dataclass(frozen=True)
class ScoreFilter:
    """`start` and `end` limit the time at which scores were made, both included; an empty text matches all."""

    start: datetime
    end: datetime
    score_name: str = ""
    score_type: str = ""
    evaluator_type: str = ""


@dataclass(frozen=True)
class _Named:
    score_name: str
    score_type: str
    count: int


@dataclass(frozen=True)
class _Measured(_Named):
    mean: float | None
    min: float | None
    max: float | None


@dataclass(frozen=True)
class _Counted(_Measured):
    ones: int


@dataclass(frozen=True)
class LabelCount:
    label: str
    count: int


@dataclass(frozen=True)
class ScoreFigures(_Measured):
    """The distribution has the most frequent labels, which only booleans and categories have."""

    distribution: list[LabelCount] | None


@dataclass(frozen=True)
class _Labelled(_Named):
    label: str


_NAMES = ("score_name", "score_type")
_LABELLED = "AND t.score_type = 'category' AND t.score_name IN {names:Array(String)}"
_LABEL = "if(t.score_label != '', t.score_label, toString(t.score_value))"


def score_figures(
    project_id: UUID, filters: ScoreFilter, group_by: str, *, limit: int, offset: int
) -> tuple[int, list[ScoreFigures]]:
    """The number of groups, and a page of them by name, type and group. `group_by` is one of GROUPINGS."""
    where, params = _matching(project_id, filters)
    columns, grouped, order = columns_of(group_by, _NAMES)
    scores = f"FROM scores AS t FINAL WHERE {where}"
    sql = f"""
SELECT {columns} count() AS count, avg(t.score_value) AS mean, min(t.score_value) AS min, max(t.score_value) AS max,
    countIf(t.score_value = 1) AS ones
{scores} GROUP BY {grouped} ORDER BY {order} LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}
"""
    page = {**params, "limit": limit, "offset": offset}
    rows = client.query(sql, page, row=row_of(_Counted, group_by), name="scores.figures")
    labels = _labels(scores, params, group_by, rows)
    kind = row_of(ScoreFigures, group_by)
    groups = [seen_as(kind, row, distribution=_distribution(row, labels[_key(row, group_by)])) for row in rows]
    if len(rows) < limit and (rows or not offset):
        return offset + len(rows), groups
    count = f"SELECT count() AS count FROM (SELECT {columns} 1 {scores} GROUP BY {grouped})"
    return client.query(count, params, row=int, name="scores.count")[0], groups


def _distribution(row: _Counted, labels: list[LabelCount]) -> list[LabelCount] | None:
    if row.score_type == ScoreType.NUMBER:
        return None
    if row.score_type == ScoreType.BOOLEAN:
        both = LabelCount("true", row.ones), LabelCount("false", row.count - row.ones)
        return [label for label in both if label.count]
    return labels


def _labels(
    scores: str, params: Mapping[str, Any], group_by: str, rows: Sequence[_Counted]
) -> Mapping[tuple[Any, ...], list[LabelCount]]:
    labels: defaultdict[tuple[Any, ...], list[LabelCount]] = defaultdict(list)
    names = sorted({row.score_name for row in rows if row.score_type == ScoreType.CATEGORY})
    if not names:
        return labels
    columns, grouped, order = columns_of(group_by, _NAMES)
    sql = f"""
SELECT {columns} {_LABEL} AS label, count() AS count {scores} {_LABELLED} GROUP BY {grouped}, label
ORDER BY {order}, count DESC, label LIMIT {{labels:UInt64}} BY {grouped}
"""
    values = {**params, "names": names, "labels": LABELS_SHOWN}
    for row in client.query(sql, values, row=row_of(_Labelled, group_by), name="scores.labels"):
        labels[_key(row, group_by)].append(LabelCount(row.label, row.count))
    return labels


def _key(row: Any, group_by: str) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in (*_NAMES, *GROUPINGS[group_by]))


def _matching(project_id: UUID, filters: ScoreFilter) -> tuple[str, dict[str, Any]]:
    where = (
        "t.project_id = {project:UUID} AND t.ts >= {start:DateTime64(6, 'UTC')} AND t.ts <= {end:DateTime64(6, 'UTC')}"
    )
    params: dict[str, Any] = {"project": project_id, "start": filters.start, "end": filters.end}
    for name in ("score_name", "score_type", "evaluator_type"):
        if getattr(filters, name):
            where += f" AND t.{name} = {{{name}:String}}"
            params[name] = getattr(filters, name)
    return where, params
