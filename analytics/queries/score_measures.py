from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.measures import MeasuredRow
from analytics.queries.usage import BEGINNING, Interval

SCORE_MEASURES: Mapping[str, str] = {"mean_score": "avg(s.score_value)", "score_count": "toFloat64(count())"}
_NO_PROMPT = "s.prompt_config_id = toUUID('00000000-0000-0000-0000-000000000000')"
SCORE_GROUPS: Mapping[str, str] = {
    "score_name": "toString(s.score_name)",
    "evaluator_type": "toString(s.evaluator_type)",
    "provider": "toString(s.provider)",
    "model": "toString(s.model)",
    "prompt": f"if({_NO_PROMPT}, '', toString(s.prompt_config_id))",
    "prompt_version": f"if({_NO_PROMPT}, '', concat(toString(s.prompt_config_id), '/', toString(s.prompt_version)))",
}
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("score_name", "score_type", "evaluator_type", "provider", "model", "variant"), "String"),
    **dict.fromkeys(("prompt_config_id", "rollout_id"), "UUID"),
    "prompt_version": "UInt32",
}


@dataclass(frozen=True)
class ScoreScope:
    """The scores that match `filters`, made from `start` to `end`, both included; split by one of SCORE_GROUPS unless
    `group_by` is empty."""

    project_id: UUID
    start: datetime
    end: datetime
    filters: Mapping[str, Any]
    group_by: str = ""


def measure_scores(scope: ScoreScope, names: Sequence[str], *, limit: int) -> list[MeasuredRow]:
    order = "ORDER BY isNaN(values[1]), values[1] DESC, key LIMIT {limit:UInt64}"
    return _query(scope, names, None, order, {"limit": limit})


def measure_score_intervals(
    scope: ScoreScope, names: Sequence[str], interval: Interval, *, keys: Sequence[str] | None = None
) -> list[MeasuredRow]:
    return _query(scope, names, interval, "", {} if keys is None else {"keys": list(keys)})


def _query(
    scope: ScoreScope, names: Sequence[str], interval: Interval | None, tail: str, more: Mapping[str, Any]
) -> list[MeasuredRow]:
    key = SCORE_GROUPS[scope.group_by] if scope.group_by else "''"
    where = [f"s.{name} = {{{name}:{_TYPES[name]}}}" for name in sorted(scope.filters)]
    if "keys" in more:
        where.append(f"{key} IN {{keys:Array(String)}}")
    beginning = BEGINNING[interval].format(time="s.ts") if interval else "toDateTime('1970-01-01 00:00:00', 'UTC')"
    values = ", ".join(SCORE_MEASURES[name] for name in names)
    sql = f"""
SELECT {key} AS key, toDateTime64({beginning}, 6, 'UTC') AS start, [{values}] AS values
FROM scores AS s FINAL
WHERE s.project_id = {{project:UUID}} AND s.ts >= {{start:DateTime64(6, 'UTC')}}
    AND s.ts <= {{end:DateTime64(6, 'UTC')}} AND {" AND ".join(["1", *where])}
GROUP BY key, start {tail}
"""
    params = {"project": scope.project_id, "start": scope.start, "end": scope.end, **scope.filters, **more}
    return client.query(sql, params, row=MeasuredRow, name="measures.scores")
