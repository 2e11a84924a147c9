"""What users did after the answers of both arms: shown beside the metrics, and deciding nothing.

Events of one session say less than as many of several: where events come together in sessions, a share has the interval
of fewer requests. Unlike those of metrics, the intervals hold for one look.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from analytics.agreement import share_of
from analytics.queries.variants import BASELINE, TARGET
from analytics.queries.variants.signals import (
    AnswerCounts,
    RolloutWindow,
    Sampled,
    answer_counts,
    sampled_answers,
)
from rollouts.models import Rollout

ASKED_AGAIN, EDITED, LEFT = "asked_again", "edited", "left"
SIGNALS = (ASKED_AGAIN, EDITED, LEFT)
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class _Share:
    """A share, or the difference of two, with the bounds of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Events:
    """So many of the `requests` had the event; `squares` is the sum of the squares of their numbers by session."""

    events: int
    squares: int
    requests: int

    @property
    def share(self) -> _Share | None:
        together = self.squares / self.events if self.events else 1.0
        found = share_of(self.events / together, self.requests / together)
        if found is None or found.low is None or found.high is None:
            return None
        return _Share(found.value, found.low, found.high)


def window_of(rollout: Rollout) -> RolloutWindow:
    """Returns the range of the rollout's requests, wider by a minute: some arrive before the start is stored or after
    the end."""
    now = timezone.now()
    return RolloutWindow(
        project_id=rollout.project_id,
        rollout_id=rollout.pk,
        config_id=rollout.config_id,
        start=(rollout.started_at or rollout.created_at) - timedelta(minutes=1),
        end=(rollout.ended_at or now) + timedelta(minutes=1),
        now=now,
    )


def signals_of(rollout: Rollout) -> dict[str, Any]:
    """Returns the signals by name, each with both arms. Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    window = window_of(rollout)
    counts = answer_counts(window)
    sampled: dict[str, list[Sampled]] = {TARGET: [], BASELINE: []}
    for one in sampled_answers(window, counts):
        sampled[one.variant].append(one)
    arms = {arm: _arm(counts.get(arm, AnswerCounts(arm)), sampled[arm]) for arm in (TARGET, BASELINE)}
    return {name: _compared(arms[TARGET][name], arms[BASELINE][name]) for name in SIGNALS}


def _arm(counts: AnswerCounts, sampled: Sequence[Sampled]) -> Mapping[str, tuple[_Events, Mapping[str, int]]]:
    """Returns by signal the events of an arm, and by reason how many answers are not counted."""
    again = _events((one.session, one.asked_again) for one in sampled)
    left = _events((one.session, one.left) for one in sampled)
    edited = _Events(counts.edited, counts.edited_squares, counts.settled)
    in_session = counts.answered - counts.without_session
    return {
        ASKED_AGAIN: (again, {
            "no_session": counts.without_session,
            "no_text": len(sampled) - again.requests,
            "too_recent": in_session - counts.drawn_from,
            "not_sampled": max(counts.drawn_from - len(sampled), 0),
        }),
        EDITED: (edited, {"too_recent": counts.answered - counts.settled}),
        LEFT: (left, {
            "no_session": counts.without_session,
            "too_recent": in_session - counts.settled_in_session,
            "not_sampled": max(counts.settled_in_session - left.requests, 0),
        }),
    }  # fmt: skip


def _events(answers: Iterable[tuple[int, bool | None]]) -> _Events:
    known = [(session, happened) for session, happened in answers if happened is not None]
    by_session = Counter(session for session, happened in known if happened)
    return _Events(by_session.total(), sum(count * count for count in by_session.values()), len(known))


def _compared(target: tuple[_Events, Mapping[str, int]], baseline: tuple[_Events, Mapping[str, int]]) -> dict[str, Any]:
    return {
        TARGET: _shown(*target),
        BASELINE: _shown(*baseline),
        **_difference(target[0].share, baseline[0].share),
    }


def _shown(events: _Events, not_counted: Mapping[str, int]) -> dict[str, Any]:
    share = events.share
    return {
        "event_count": events.events,
        "request_count": events.requests,
        "share": share.value if share else None,
        "interval": _interval(share),
        "not_counted": {reason: count for reason, count in not_counted.items() if count},
    }


def _difference(target: _Share | None, baseline: _Share | None) -> dict[str, Any]:
    """Returns the difference with Newcombe's interval (1998), which is made of those of both shares."""
    found = None
    if target and baseline:
        lower = math.hypot(target.value - target.low, baseline.high - baseline.value)
        upper = math.hypot(target.high - target.value, baseline.value - baseline.low)
        value = target.value - baseline.value
        found = _Share(value, max(-1.0, value - lower), min(1.0, value + upper))
    return {"difference": found.value if found else None, "interval": _interval(found)}


def _interval(found: _Share | None) -> dict[str, Any]:
    return {"low": found.low if found else None, "high": found.high if found else None, "confidence": _CONFIDENCE}
