from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

_SKEW_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Problem:
    check: str
    message: str
    is_fatal: bool = True


def skew(store: str, its_time: float) -> Iterator[Problem]:
    """Yields a problem if this host's clock differs from the store's `its_time`, in Unix seconds."""
    seconds = time.time() - its_time
    if abs(seconds) > _SKEW_SECONDS:
        yield Problem("clock", f"This host's clock is {seconds:+.0f} s off that of {store}.")


def lacks(store: str, missing: list[str]) -> str:
    return f"The {store} lacks {len(missing)} migrations, the first is {missing[0]}: run `manage.py migrate_all`."
