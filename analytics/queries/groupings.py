from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import make_dataclass
from functools import cache
from typing import Any
from uuid import UUID

GROUPINGS: Mapping[str, Sequence[str]] = {
    "none": (),
    "model": ("provider", "model"),
    "prompt_version": ("prompt_config_id", "prompt_version"),
    "variant": ("rollout_id", "variant"),
    "evaluator_type": ("evaluator_type",),
}
"""The columns by which each grouping separates."""

_TYPES: Mapping[str, Any] = {"prompt_config_id": UUID, "rollout_id": UUID, "prompt_version": int}
_EMPTY: Mapping[Any, str] = {UUID: f"toUUID('{UUID(int=0)}')", int: "0", str: "''"}


@cache
def row_of(base: Any, group_by: str) -> Any:
    columns = [(name, _TYPES.get(name, str) | None) for name in GROUPINGS[group_by]]
    return make_dataclass(base.__name__, columns, bases=(base,), frozen=True)


def columns_of(group_by: str, before: Sequence[str] = ()) -> tuple[str, str, str]:
    """SQL for rows `t`: the selected columns (`before` and the grouping's), the GROUP BY, and the order of the
    groups.
    """
    shown = {name: f"nullIf(t.{name}, {_EMPTY[_TYPES.get(name, str)]})" for name in GROUPINGS[group_by]}
    names = [*before, *shown]
    selected = "".join(f"{shown.get(name, f't.{name}')} AS {name}, " for name in names)
    return selected, ", ".join(names), ", ".join(f"{name} NULLS FIRST" for name in names)
