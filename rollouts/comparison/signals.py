"""What users did after the answers of both arms: shown beside the metrics, deciding nothing.

Events of one session say less than those of several: where events cluster in sessions, a share has the interval of
fewer requests. Unlike those of metrics, the intervals hold for one look.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from analytics.agreement import Estimate, share_of
from analytics.queries.variants import BASELINE, TARGET
from analytics.queries.variants.signals import (
    AnswerCounts,
    RolloutWindow,
    Sampled,
    answer_counts,
    sampled_answers,
)
from rollouts.models import Rollout
from rollouts.shapes import interval

ASKED_AGAIN, EDITED, LEFT = "asked_again", "edited", "left"
SIGNALS = (ASKED_AGAIN, EDITED, LEFT)


@dataclass(frozen=True, slots=True)
class _Events:
    """Of the `requests`, how many had the event; `squares` is the sum of the squares of their numbers by session."""

    events: int
    squares: int
    requests: int

    @property
    def share(self) -> Estimate | None:
        together = self.squares / self.events if self.events else 1.0
        return share_of(self.events / together, self.requests / together)


def window_of(rollout: Rollout) -> RolloutWindow:
    now = timezone.now()
    start, end = rollout.requests_between(now)
    return RolloutWindow(rollout.project_id, rollout.pk, rollout.config_id, start, end, now)


def signals_of(rollout: Rollout) -> dict[str, Any]:
    window = window_of(rollout)
    counts = answer_counts(window)
    sampled: dict[str, list[Sampled]] = {TARGET: [], BASELINE: []}
    for one in sampled_answers(window, counts):
        sampled[one.variant].append(one)
    arms = {arm: _arm(counts.get(arm, AnswerCounts(arm)), sampled[arm]) for arm in (TARGET, BASELINE)}
    return {name: _compared(arms[TARGET][name], arms[BASELINE][name]) for name in SIGNALS}


def _arm(counts: AnswerCounts, sampled: Sequence[Sampled]) -> Mapping[str, tuple[_Events, Mapping[str, int]]]:
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
    return {
        "event_count": events.events,
        "request_count": events.requests,
        **_with_interval("share", events.share),
        "not_counted": {reason: count for reason, count in not_counted.items() if count},
    }


def _with_interval(name: str, found: Estimate | None) -> dict[str, Any]:
    if found is None:
        return {name: None, "interval": interval(None, None)}
    return {name: found.value, "interval": interval(found.low, found.high)}


def _difference(*shares: Estimate | None) -> dict[str, Any]:
    """Returns the difference with Newcombe's interval (1998), made of the intervals of both shares."""
    known = [(one.value, one.low, one.high) for one in shares if one and one.low is not None and one.high is not None]
    if len(known) < len(shares):
        return _with_interval("difference", None)
    (own, own_low, own_high), (theirs, low, high) = known
    lower, upper = math.hypot(own - own_low, high - theirs), math.hypot(own_high - own, theirs - low)
    value = own - theirs
    return _with_interval("difference", Estimate(value, max(-1.0, value - lower), min(1.0, value + upper)))
