"""What users did after the answers of both arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.ui import formats
from core.ui.pages import Visit
from rollouts.comparison.signals import ASKED_AGAIN, EDITED, LEFT, signals_of
from rollouts.comparison.tables import ARMS, difference
from rollouts.models import Rollout

_NAMES = {
    ASKED_AGAIN: "asked the same again within ten minutes",
    EDITED: "edited it before it was used",
    LEFT: "left the session",
}
_REASONS = {
    "no_session": "no session",
    "no_text": "no text",
    "too_recent": "too recent",
    "not_sampled": "not in the sample",
}


@dataclass(frozen=True, slots=True)
class _Cell:
    share: str
    of: str
    not_counted: str


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    arms: Sequence[tuple[str, _Cell]]
    difference: str


def signals(visit: Visit, row: Rollout) -> Mapping[str, Any]:
    """Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    found = signals_of(row)
    rows = [
        _Row(words, [(arm, _cell(found[name][arm])) for arm in ARMS], difference(name, found[name]))
        for name, words in _NAMES.items()
    ]
    return {"rows": rows if any(_is_of_any(one[arm]) for one in found.values() for arm in ARMS) else []}


def _is_of_any(arm: Mapping[str, Any]) -> bool:
    return bool(arm["request_count"] or arm["not_counted"])


def _cell(arm: Mapping[str, Any]) -> _Cell:
    low, high = (formats.share(arm["interval"][end]) for end in ("low", "high"))
    return _Cell(
        share=f"{formats.share(arm['share'])} ({low} to {high})" if arm["request_count"] else formats.NONE,
        of=f"{formats.number(arm['event_count'])} of {formats.number(arm['request_count'])}",
        not_counted=", ".join(
            f"{_REASONS[reason]} {formats.number(count)}" for reason, count in arm["not_counted"].items()
        ),
    )
