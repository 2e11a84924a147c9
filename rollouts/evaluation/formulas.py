"""The formulas by their number, each a module of the same names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, ModuleType

from rollouts.evaluation import formula_1, formula_2

_FORMULAS: Mapping[int, ModuleType] = MappingProxyType({1: formula_1, 2: formula_2})

CURRENT = formula_2.FORMULA
"""What rollouts are judged by that begin today. One that has begun stays with its formula."""


def formula_of(number: int) -> ModuleType:
    """Raises ValueError for a number that no formula has: a newer version of the service stored it."""
    try:
        return _FORMULAS[number]
    except KeyError:
        raise ValueError(f"no formula has the number {number}") from None
