"""Up to when the figures of now are complete: rows of finished requests may still be on their way to their store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.utils import timezone

# Rows arrive within some seconds; nothing is said of these.
_PROMISE_SECONDS = 10.0

_measures: list[Callable[[], float]] = []


def measure_by(waiting_seconds: Callable[[], float]) -> None:
    """`waiting_seconds` returns how long the oldest row has waited, 0.0 if none waits."""
    _measures[:] = [waiting_seconds]


def complete_until(now: datetime) -> datetime | None:
    """Returns None if all rows have arrived, but for those of the last seconds."""
    waited = max((measure() for measure in _measures), default=0.0)
    return now - timedelta(seconds=waited) if waited > _PROMISE_SECONDS else None


def clock(moment: datetime) -> str:
    return timezone.localtime(moment).strftime("%H:%M:%S")
