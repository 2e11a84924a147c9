"""Day and night: `make test` proves each behaviour once, `make test-all` in every combination.

A test marked `night` runs at night alone. A test that runs by day with fewer examples or cases takes their number from
`examples` and `cases`. CONTRIBUTING lists what was moved, and what of it stays in the day.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

NIGHT = bool(os.environ.get("NIGHT"))


def examples(day: int, night: int) -> int:
    return night if NIGHT else day


def cases(every: Sequence[T], *, by_day: Sequence[T]) -> Sequence[T]:
    return every if NIGHT else by_day
