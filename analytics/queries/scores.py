"""Summarizes scores by name, and by model, prompt version or arm of their requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.models import ScoreType

# The columns by which each grouping separates scores, besides name and type. The columns of other groupings then have
# one empty value.
GROUPINGS: Mapping[str, Sequence[str]] = {
    "none": (),
    "model": ("provider", "model"),
    "prompt_version": ("prompt_config_id", "prompt_version"),
    "variant": ("rollout_id", "variant"),
    "evaluator_type": ("evaluator_type",),
}
LABELS_SHOWN = 50

_EMPTY = {
    "provider": "''",
    "model": "''",
    "prompt_config_id": "toUUID('00000000-0000-0000-0000-000000000000')",
    "prompt_version": "toUInt32(0)",
    "rollout_id": "toUUID('00000000-0000-0000-0000-000000000000')",
    "variant": "''",
    "evaluator_type": "''",
}


@dataclass(frozen=True)
class ScoreFilter:
    """The filter of the scores: `start` and `end` limit the time at which they were made, both included; an empty text
    is no filter."""

    start: datetime
    end: datetime
    score_name: str = ""
    score_type: str = ""
    evaluator_type: str = ""


@dataclass(frozen=True)
class _Group:
    """A group of scores. `provider` to `evaluator_type` are empty where the grouping does not separate by them or the
    value is unknown."""

    score_name: str
    score_type: str
    provider: str
    model: str
    prompt_config_id: UUID
    prompt_version: int
    rollout_id: UUID
    variant: str
    evaluator_type: str
    scores: int


@dataclass(frozen=True)
class ScoreGroup(_Group):
    """The figures of a group. `ones` counts the scores of value 1: the true ones of a boolean. `groups` is the number
    of all groups."""

    mean: float
    lowest: float
    highest: float
    ones: int
    groups: int


@dataclass(frozen=True)
class Label:
    """A value of category or boolean scores, and the number of scores with it."""

    label: str
    scores: int


@dataclass(frozen=True)
class ScoreFiguresRow:
    """A group and its most frequent `labels`, which only booleans and categories have."""

    group: ScoreGroup
    labels: Sequence[Label] = field(default_factory=list)


@dataclass(frozen=True)
class _Labelled(_Group):
    label: str


@dataclass(frozen=True)
class _Count:
    count: int


_KEY = ("score_name", "score_type", *_EMPTY)
_ORDER = ", ".join(_KEY)
_LABELLED = "AND s.score_type = 'category' AND s.score_name IN {names:Array(String)}"
_LABEL = "if(s.score_label != '', s.score_label, toString(s.score_value))"


def score_figures(
    project_id: UUID, filters: ScoreFilter, group_by: str, *, limit: int, offset: int
) -> tuple[int, list[ScoreFiguresRow]]:
    """Returns the number of groups, and a page of them by name, type and group. `group_by` is one of GROUPINGS."""
    where, params = _matching(project_id, filters)
    columns = _columns(group_by)
    sql = f"""
SELECT {columns}, count() AS scores, avg(s.score_value) AS mean, min(s.score_value) AS lowest,
    max(s.score_value) AS highest, countIf(s.score_value = 1) AS ones, count() OVER () AS groups
FROM scores AS s FINAL WHERE {where} GROUP BY {_ORDER} ORDER BY {_ORDER} LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}
"""
    groups = client.query(sql, {**params, "limit": limit, "offset": offset}, row=ScoreGroup, name="scores.figures")
    if groups or not offset:
        labels = _labels(where, params, columns, groups)
        return sum(group.groups for group in groups[:1]), [
            ScoreFiguresRow(group, labels.get(_key(group), [])) for group in groups
        ]
    count = f"SELECT count() AS count FROM (SELECT {columns} FROM scores AS s FINAL WHERE {where} GROUP BY {_ORDER})"
    return client.query(count, params, row=_Count, name="scores.count")[0].count, []


def _labels(
    where: str, params: Mapping[str, Any], columns: str, groups: Sequence[ScoreGroup]
) -> Mapping[tuple[Any, ...], list[Label]]:
    """Returns the labels of the page's groups: a second query of the scores, for booleans and categories only."""
    labels: defaultdict[tuple[Any, ...], list[Label]] = defaultdict(list)
    for group in groups:
        if group.score_type == ScoreType.BOOLEAN:
            both = [Label("true", group.ones), Label("false", group.scores - group.ones)]
            labels[_key(group)] = [label for label in both if label.scores]
    names = sorted({group.score_name for group in groups if group.score_type == ScoreType.CATEGORY})
    if not names:
        return labels
    sql = f"""
SELECT {columns}, {_LABEL} AS label, count() AS scores
FROM scores AS s FINAL WHERE {where} {_LABELLED} GROUP BY {_ORDER}, label
ORDER BY {_ORDER}, scores DESC, label LIMIT {{labels:UInt64}} BY {_ORDER}
"""
    found = client.query(sql, {**params, "names": names, "labels": LABELS_SHOWN}, row=_Labelled, name="scores.labels")
    for row in found:
        labels[_key(row)].append(Label(row.label, row.scores))
    return labels


def _columns(group_by: str) -> str:
    kept = GROUPINGS[group_by]
    others = [f"s.{name} AS {name}" if name in kept else f"{empty} AS {name}" for name, empty in _EMPTY.items()]
    return ", ".join(["s.score_name AS score_name", "s.score_type AS score_type", *others])


def _key(row: ScoreGroup | _Labelled) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in _KEY)


def _matching(project_id: UUID, filters: ScoreFilter) -> tuple[str, dict[str, Any]]:
    where = (
        "s.project_id = {project:UUID} AND s.ts >= {start:DateTime64(6, 'UTC')} AND s.ts <= {end:DateTime64(6, 'UTC')}"
    )
    params: dict[str, Any] = {"project": project_id, "start": filters.start, "end": filters.end}
    for name in ("score_name", "score_type", "evaluator_type"):
        if getattr(filters, name):
            where += f" AND s.{name} = {{{name}:String}}"
            params[name] = getattr(filters, name)
    return where, params
