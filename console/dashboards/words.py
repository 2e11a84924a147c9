from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from analytics.figures.registry import FIGURES, FigureUnit
from core.selectors import api_key_names, team_names
from core.ui.plots import Unit
from prompts.selectors import prompt_names

GROUP_LABELS: Mapping[str, str] = {
    "model": "Model",
    "provider": "Provider",
    "deployment": "Deployment",
    "user": "User",
    "api_key": "API key",
    "team": "Team",
    "prompt": "Prompt",
    "prompt_version": "Prompt version",
    "source": "Source",
    "operation": "Operation",
    "metadata": "Metadata of the key",
    "error_code": "Error code",
    "outcome": "Outcome",
    "score_name": "Score",
    "evaluator_type": "Evaluator",
}
# The filters whose values are ids of rows with names.
_NAMED = {"api_key_id": (api_key_names, "a deleted key"), "team_id": (team_names, "a deleted team")}
_FILTER_LABELS: Mapping[str, str] = {
    "user_id": "user",
    "session_id": "session",
    "api_key_id": "API key",
    "team_id": "team",
    "prompt_config_id": "prompt",
    "prompt_version": "version",
    "rollout_id": "rollout",
    "variant": "arm",
    "min_latency_ms": "slower than (ms)",
    "max_latency_ms": "faster than (ms)",
    "min_cost_usd": "dearer than ($)",
    "max_cost_usd": "cheaper than ($)",
    "min_ttft_ms": "first token later than (ms)",
    "max_ttft_ms": "first token before (ms)",
}
UNITS: Mapping[FigureUnit, Unit] = {
    FigureUnit.COUNT: Unit.COUNT,
    FigureUnit.USD: Unit.MONEY,
    FigureUnit.MILLISECONDS: Unit.MILLISECONDS,
    FigureUnit.SHARE: Unit.SHARE,
    FigureUnit.TOKENS: Unit.TOKENS,
    FigureUnit.SCORE: Unit.COUNT,
}


def group_label(group_by: str) -> str:
    return GROUP_LABELS.get(group_by, group_by.replace("_", " ").capitalize())


def figure_label(name: str) -> str:
    return FIGURES[name].label if name in FIGURES else name


def filter_words(project_id: UUID, filters: Mapping[str, Any]) -> list[str]:
    return [
        f"{_filter_label(name)}: {_value(project_id, name, value)}"
        for name, given in filters.items()
        for value in (given if isinstance(given, list) else [given])
    ]


def _filter_label(name: str) -> str:
    bare = name.removeprefix("not_")
    label = _FILTER_LABELS.get(bare, bare.replace("_", " "))
    return label if bare == name else f"not {label}"


def _value(project_id: UUID, name: str, value: str) -> str:
    bare = name.removeprefix("not_")
    if bare in _NAMED:
        names_of, gone = _NAMED[bare]
        names = names_of(project_id, [int(value)]) if value.isdecimal() else {}
        return next(iter(names.values()), gone)
    if bare == "prompt_config_id":
        return prompt_names(project_id, [value]).get(value, "a deleted prompt")
    return value


def key_names(project_id: UUID, group_by: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Returns names by key for prompts, their versions, and requests without either."""
    prompts = prompt_names(project_id, [row["key"] for row in rows]) if group_by.startswith("prompt") else {}
    nothing = f"no {group_label(group_by).lower().replace('api', 'API')}"
    return {row["key"]: prompts.get(row["key"]) or row["name"] or nothing for row in rows}


def filter_lines(filters: Mapping[str, Any]) -> Iterator[str]:
    for name, given in filters.items():
        for value in given if isinstance(given, list) else [given]:
            yield f"{name}={value}"


def parse_filter_lines(text: str) -> dict[str, str | list[str]]:
    """Raises ValueError for a line without an equals sign."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise ValueError(line)
        found.setdefault(name.strip(), []).append(value.strip())
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}
