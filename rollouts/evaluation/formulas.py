"""The formulas by number. Each formula is a module, and all of them have the same names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, ModuleType

from rollouts.evaluation import formula_1, formula_2

_FORMULAS: Mapping[int, ModuleType] = MappingProxyType({1: formula_1, 2: formula_2})

CURRENT = formula_2.FORMULA
"""The formula of rollouts that begin today. A rollout keeps the formula it began with."""


def formula_of(number: int) -> ModuleType:
    """Returns the formula of this number. Raises ValueError for an unknown number, which a newer version of the service
    stored."""
    try:
        return _FORMULAS[number]
    except KeyError:
        raise ValueError(f"no formula has the number {number}") from None
