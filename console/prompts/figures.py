from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import prompts
from analytics.presenters.scores import bad_rating_metrics, score_metrics
from analytics.queries.groups import PromptGrouping
from analytics.queries.scores import ScoreFilter
from core.wire.pagination import MAXIMUM_LIMIT, Page

# The figures of a table of use that is kept as a chart, in the order of its columns.
USE_FIGURES = ("request_count", "error_rate", "total_cost_usd", "average_latency_ms")

_WHOLE = Page(MAXIMUM_LIMIT, 0)
_MAX_SCORES = 3


@dataclass(frozen=True, slots=True)
class MeanScore:
    """The mean of all scores of one name; of booleans, the share of true ones."""

    name: str
    score_type: str
    mean: float
    count: int


Figures = Mapping[str, Any]


def figures_of_configs(project_id: UUID, time_range: TimeRange) -> dict[UUID, Figures]:
    found = prompts(project_id, time_range, _WHOLE, PromptGrouping.CONFIG)
    return {row["prompt_config_id"]: row for row in found.results}


def figures_of_versions(project_id: UUID, config_id: UUID, time_range: TimeRange) -> dict[int, Figures]:
    found = prompts(project_id, time_range, _WHOLE, PromptGrouping.VERSION, config_id)
    return {row["prompt_version"]: row for row in found.results}


def scores_of_versions(project_id: UUID, time_range: TimeRange) -> dict[tuple[UUID, int], list[MeanScore]]:
    """Returns the scores by config and version, those with the most values first."""
    filters = ScoreFilter(time_range.start, time_range.end)
    found = score_metrics(project_id, filters, "prompt_version", _WHOLE)
    by_version: defaultdict[tuple[UUID, int], list[MeanScore]] = defaultdict(list)
    for row in found.results:
        config_id, version = row["prompt_config_id"], row["prompt_version"]
        if config_id is not None and version is not None and row["score_type"] != "category":
            score = MeanScore(row["score_name"], row["score_type"], row["mean"], row["count"])
            by_version[config_id, version].append(score)
    return {key: _most(scores) for key, scores in by_version.items()}


def bad_ratings_of_versions(project_id: UUID, config_id: UUID, time_range: TimeRange) -> dict[int, Figures]:
    """Counts the answers rated bad within a day, by version."""
    found = bad_rating_metrics(project_id, time_range.start, time_range.end, _WHOLE, config_id)
    return {row["prompt_version"]: row for row in found.results}


def scores_of_configs(project_id: UUID, time_range: TimeRange) -> dict[UUID, list[MeanScore]]:
    """Returns the means over all versions of a config, weighted by their numbers of scores."""
    sums: defaultdict[UUID, dict[tuple[str, str], tuple[float, int]]] = defaultdict(dict)
    for (config_id, _), scores in scores_of_versions(project_id, time_range).items():
        for score in scores:
            total, count = sums[config_id].get((score.name, score.score_type), (0.0, 0))
            sums[config_id][score.name, score.score_type] = (total + score.mean * score.count, count + score.count)
    return {
        config_id: _most(
            [MeanScore(name, kind, total / count, count) for (name, kind), (total, count) in named.items()]
        )
        for config_id, named in sums.items()
    }


def in_words(scores: Sequence[MeanScore]) -> str:
    return ", ".join(
        f"{score.name} {f'{score.mean:.0%}' if score.score_type == 'boolean' else f'{score.mean:.1f}'} ({score.count})"
        for score in scores[:_MAX_SCORES]
    )


def rated_bad(row: Figures | None) -> str:
    """Returns the share of answers rated bad; only counts until the first answer's day is over."""
    if row is None:
        return ""
    if row["bad_rate"] is None:
        return f"{row['open_bad_count']:,} of {row['open_answered_count']:,} so far"
    return f"{row['bad_rate']:.1%} ({row['bad_count']:,} of {row['answered_count']:,})"


def _most(scores: Sequence[MeanScore]) -> list[MeanScore]:
    return sorted(scores, key=lambda score: (-score.count, score.name))
