"""Segments: parts of a rollout's traffic in which the target may be worse while it is as good as the baseline overall.

A segment is a value of one dimension, such as a language. Each has e-processes of the same form as the metrics that
count requests, over blocks of its own requests; e-BH over all of them names those in which the target is worse. That is
a warning, and no verdict rests on it.

Three rules keep the promise of e-BH. Values become segments by their requests in both arms together, before outcomes
are looked at. The blocks of all segments end at the same times, so one segment says nothing of another's open block.
And the number of hypotheses is that of the places for segments, taken or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from rollouts.evaluation.counts import events_of
from rollouts.evaluation.policy import RATE_COUNT_SIZE, RATE_SIZE, Metric, Policy
from rollouts.evaluation.statistics.ebh import e_bh, needed
from rollouts.evaluation.statistics.evidence import ODDS, added, log_sum, odds_between
from rollouts.evaluation.statistics.mixture import RATES_FIRST_SHARE, beginning, beginnings, begun, evidence
from rollouts.evaluation.statistics.strata import AnsweredRates
from rollouts.evaluation.terms import Action

SIGNALS = (Metric.UNANSWERED, Metric.CONTRACT, Metric.EMPTY)
"""The metrics by which a segment is looked at."""
LEVEL = 0.05
MAX_SEGMENTS, MAX_VALUES = 100, 20
"""The places for segments, in all and of one dimension."""
MIN_REQUESTS = 30
"""A value becomes a segment once both arms together had so many requests of it."""
MAX_CANDIDATES = 50
"""The number of values of a dimension that are counted before they become segments; the rarest are forgotten."""
MAX_SHARE = 0.8
"""A segment with a larger share of the traffic is not named: it says nothing that the metrics do not say."""
BLOCK_REQUESTS = 1000
"""A block ends when the whole rollout had so many requests, of which a segment of 3 % has the 30 of a usual block."""


@dataclass(frozen=True, slots=True)
class SegmentArm:
    """The requests of one arm in a segment, and their events. With sticky allocation each user counts once a stage, by
    the first request."""

    requests: int = 0
    unanswered: int = 0
    answered: int = 0
    contract: int = 0
    empty: int = 0

    def joined(self, other: SegmentArm) -> SegmentArm:
        return SegmentArm(*[getattr(self, part.name) + getattr(other, part.name) for part in fields(SegmentArm)])

    def of(self, signal: Metric) -> tuple[int, int]:
        return events_of(self, signal)


NO_REQUESTS = SegmentArm()


@dataclass(frozen=True, slots=True)
class SegmentCounts:
    dimension: str
    value: str
    allocated: int
    target: SegmentArm = NO_REQUESTS
    baseline: SegmentArm = NO_REQUESTS


@dataclass(frozen=True, slots=True)
class SegmentMinute:
    """The segments of one stage in one closed minute; the whole rollout had `requests`. `counted` is how many requests
    of both arms, or users, the segments divide among them."""

    stage: int
    requests: int
    segments: Sequence[SegmentCounts] = ()
    counted: int = 0


@dataclass(frozen=True, slots=True)
class SignalState:
    worse: tuple[float, ...]
    rates: AnsweredRates = field(default_factory=AnsweredRates)

    def advanced(self, target: tuple[int, int], baseline: tuple[int, int]) -> SignalState:
        if not target[1] or not baseline[1]:
            return self
        worse = added(self.worse, odds_between(target, baseline))
        return SignalState(worse, self.rates.with_events(target, baseline))

    def is_sizeable(self, events: int) -> bool:
        return events >= RATE_COUNT_SIZE and self.rates.is_above(*RATE_SIZE)


@dataclass(frozen=True, slots=True)
class Segment:
    """A value that had enough requests, which are counted from then on.

    The totals leave out the open block. Once `named`, it stays so. `since` is the state's `counted` when it became a
    segment.
    """

    dimension: str
    value: str
    signals: Mapping[Metric, SignalState]
    since: int = 0
    named: bool = False
    target: SegmentArm = NO_REQUESTS
    baseline: SegmentArm = NO_REQUESTS
    block_target: SegmentArm = NO_REQUESTS
    block_baseline: SegmentArm = NO_REQUESTS

    @property
    def key(self) -> tuple[str, str]:
        return self.dimension, self.value

    @property
    def all_target(self) -> SegmentArm:
        return self.target.joined(self.block_target)

    @property
    def all_baseline(self) -> SegmentArm:
        return self.baseline.joined(self.block_baseline)

    def joined(self, counts: SegmentCounts) -> Segment:
        return replace(
            self,
            block_target=self.block_target.joined(counts.target),
            block_baseline=self.block_baseline.joined(counts.baseline),
        )

    def judged(self, target: SegmentArm, baseline: SegmentArm) -> Segment:
        signals = self.signals
        if target.requests and baseline.requests:
            signals = {signal: one.advanced(target.of(signal), baseline.of(signal)) for signal, one in signals.items()}
        return replace(
            self, signals=signals, target=self.target.joined(target), baseline=self.baseline.joined(baseline)
        )

    def closed(self) -> Segment:
        if self.block_target == NO_REQUESTS == self.block_baseline:
            return self
        judged = self.judged(self.block_target, self.block_baseline)
        return replace(judged, block_target=NO_REQUESTS, block_baseline=NO_REQUESTS)


@dataclass(frozen=True, slots=True)
class SegmentState:
    """`weights` are the stages' weights in percent, `signals` those that the rollout's policy does not ignore,
    `candidates` the requests so far of values that are not segments yet, by dimension.

    `block_requests` are the whole rollout's in the open block; `counted` sums up the minutes.
    """

    weights: tuple[int, ...]
    signals: tuple[Metric, ...]
    stage: int = 0
    block_requests: int = 0
    counted: int = 0
    segments: tuple[Segment, ...] = ()
    candidates: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def waiting(self) -> float:
        return beginning(self.weights, RATES_FIRST_SHARE, after=self.stage)

    @property
    def begun(self) -> float:
        return math.fsum(beginnings(self.weights, RATES_FIRST_SHARE)[: max(self.stage, 1)])


def initial_segments(policy: Policy, weights: Sequence[int]) -> SegmentState:
    signals = tuple(signal for signal in SIGNALS if policy.action(signal) is not Action.IGNORE)
    return SegmentState(tuple(weights), signals)


def advance_segments(state: SegmentState, minute: SegmentMinute) -> SegmentState:
    if minute.stage > state.stage:
        state = _named(_entered(state, minute.stage))
    state = replace(state, counted=state.counted + minute.counted)
    found = {(one.dimension, one.value): one for one in minute.segments}
    if minute.stage < state.stage:
        # Late counts are a block of their own: if the arms do not differ, their requests are late alike.
        segments = tuple(
            one.judged(late.target, late.baseline) if (late := found.get(one.key)) else one for one in state.segments
        )
        state = _named(replace(state, segments=segments))
    else:
        segments = tuple(one.joined(more) if (more := found.get(one.key)) else one for one in state.segments)
        state = replace(state, segments=segments, block_requests=state.block_requests + minute.requests)
        if state.block_requests >= BLOCK_REQUESTS:
            state = _named(_closed(state))
    return _admitted(state, minute.segments)


def named_segments(state: SegmentState) -> list[Segment]:
    return sorted((one for one in state.segments if one.named), key=lambda one: -segment_evidence(state, one))


def segment_evidence(state: SegmentState, segment: Segment) -> float:
    return _mean([evidence(one.worse, state.waiting) for one in segment.signals.values()], len(segment.signals))


def evidence_needed(named: int) -> float:
    return needed(min(named + 1, MAX_SEGMENTS), level=LEVEL, hypotheses=MAX_SEGMENTS)


def _named(state: SegmentState) -> SegmentState:
    logs = [_telling_evidence(state, one) for one in state.segments]
    places = set(e_bh(logs, level=LEVEL, hypotheses=MAX_SEGMENTS))
    if all(state.segments[place].named for place in places):
        return state
    segments = [replace(one, named=one.named or place in places) for place, one in enumerate(state.segments)]
    return replace(state, segments=tuple(segments))


def _telling_evidence(state: SegmentState, segment: Segment) -> float:
    """Returns ln E of the signals whose difference matters, for a segment that is not nearly all of the traffic. It is
    at most that of all signals, so it keeps the promise of e-BH."""
    if segment.all_target.requests + segment.all_baseline.requests > MAX_SHARE * (state.counted - segment.since):
        return -math.inf
    logs = [
        evidence(one.worse, state.waiting)
        for signal, one in segment.signals.items()
        if one.is_sizeable(segment.target.of(signal)[0])
    ]
    return _mean(logs, len(segment.signals))


def _mean(logs: Sequence[float], number: int) -> float:
    return log_sum(logs) - math.log(number) if logs else -math.inf


def _entered(state: SegmentState, stage: int) -> SegmentState:
    state = _closed(state)
    later = replace(state, stage=stage)
    weight = later.begun - state.begun
    return replace(later, segments=tuple(_with_process(one, weight) for one in state.segments)) if weight else later


def _with_process(segment: Segment, weight: float) -> Segment:
    signals = {signal: replace(one, worse=begun(one.worse, weight)) for signal, one in segment.signals.items()}
    return replace(segment, signals=signals)


def _closed(state: SegmentState) -> SegmentState:
    return replace(state, block_requests=0, segments=tuple(one.closed() for one in state.segments))


def _admitted(state: SegmentState, counts: Iterable[SegmentCounts]) -> SegmentState:
    taken = {one.key for one in state.segments}
    candidates = {dimension: dict(values) for dimension, values in state.candidates.items()}
    for one in counts:
        if (one.dimension, one.value) not in taken:
            values = candidates.setdefault(one.dimension, {})
            values[one.value] = values.get(one.value, 0) + one.allocated
    ready = sorted(
        (-requests, dimension, value)
        for dimension, values in candidates.items()
        for value, requests in values.items()
        if requests >= MIN_REQUESTS
    )
    segments = list(state.segments)
    for _, dimension, value in ready:
        if len(segments) < MAX_SEGMENTS and sum(one.dimension == dimension for one in segments) < MAX_VALUES:
            segments.append(_new_segment(state, dimension, value))
            del candidates[dimension][value]
    return replace(
        state,
        segments=tuple(segments),
        candidates={dimension: _most_frequent(values) for dimension, values in sorted(candidates.items()) if values},
    )


def _new_segment(state: SegmentState, dimension: str, value: str) -> Segment:
    # The processes that have begun were at 1 until now.
    first = SignalState((math.log(state.begun),) * len(ODDS))
    return Segment(dimension, value, dict.fromkeys(state.signals, first), since=state.counted)


def _most_frequent(values: Mapping[str, int]) -> Mapping[str, int]:
    ordered = sorted(values.items(), key=lambda item: (-item[1], item[0]))
    return dict(sorted(ordered[:MAX_CANDIDATES]))
