from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from analytics.queries.variants import BASELINE, TARGET
from analytics.queries.variants.by_record import Recorded
from analytics.queries.variants.by_user import MinuteSums, UnitLimits, UnitSums, minute_sums, recorded_sums
from analytics.queries.variants.users import cohort_users
from rollouts.evaluation import Metric, MinuteUsers, State, UserCounts
from rollouts.evaluation.cohort import LEAST_REQUESTS, weight_before
from rollouts.evaluation.counts import MEASURES, ByUser
from rollouts.evaluation.one_user import joined
from rollouts.evaluation.policy import LATENCY_MARGIN
from rollouts.evaluation.statistics.clusters import ClusterSums
from rollouts.evaluation.statistics.grid import LOG_RATIO, bins_of_factor
from rollouts.evaluation.statistics.reference import Reference
from rollouts.open_requests.still_open import Counted
from rollouts.verdicts.minutes import ordered

MOST = 20
"""The number of users of a minute whose events are kept, those with most. The others have too few of them to decide a
block."""

METRICS: Mapping[str, Metric] = {measure: metric for metric, measure in MEASURES.items()}

# These bounds exceed every latency and cost, so that without a reference no value is cut or counts as slow.
_NO_CAP = 1e18
_NO_BIN = 2**31

Cell = tuple[int, int, str]
"""A minute, a stage and an arm: one cell of counts."""
Clusters = Mapping[str, Mapping[Metric, ClusterSums]]


def limits_of(latency: Reference | None, cost: Reference | None, latency_margin: float = LATENCY_MARGIN) -> UnitLimits:
    return UnitLimits(
        latency_cap_ms=latency.cap if latency else _NO_CAP,
        slow_bin=latency.slow_bin if latency else _NO_BIN,
        cost_cap=cost.cap if cost else _NO_CAP,
        eased_bin=latency.slow_bin + bins_of_factor(latency_margin) if latency else _NO_BIN,
    )


def cohort_of(rows: Recorded, state: State, limits: UnitLimits) -> Mapping[str, UserCounts]:
    """Returns the users of the current stage by arm, for a look at them."""
    found: dict[str, dict[str, Mapping[int, int]]] = {TARGET: {}, BASELINE: {}}
    for row in cohort_users(
        rows,
        stage=state.stage,
        from_weight=weight_before(state.weights, state.stage),
        least=LEAST_REQUESTS,
        limits=limits,
        log_ratio=LOG_RATIO,
    ):
        found[row.variant][row.metric] = ordered(row.users)
    return {arm: UserCounts(**users) for arm, users in found.items()}


def clusters_of(rows: Recorded, limits: UnitLimits) -> Clusters:
    sums = recorded_sums(rows, limits=limits, log_ratio=LOG_RATIO)
    return {
        variant: {METRICS[name]: _cluster(found) for (arm, name), found in sorted(sums.items()) if arm == variant}
        for variant in (TARGET, BASELINE)
    }


def minute_users(
    rows: Recorded, limits: UnitLimits, *, remembered: Sequence[Counted], new: Sequence[Counted], minute: int
) -> Mapping[Cell, ByUser]:
    counted = [one.request_id for one in (*remembered, *new)]
    found: dict[Cell, dict[Metric, MinuteUsers]] = {}
    for row in minute_sums(rows, limits=limits, counted=counted, log_ratio=LOG_RATIO):
        users = MinuteUsers(_cluster(row), _most(row.events))
        found.setdefault((row.minute, row.stage, row.variant), {})[METRICS[row.metric]] = users
    for cell, users in _open(new, minute).items():
        before = found.setdefault(cell, {})
        before[Metric.UNANSWERED] = joined(before.get(Metric.UNANSWERED, MinuteUsers()), users)
    return found


def _open(new: Iterable[Counted], minute: int) -> Mapping[Cell, MinuteUsers]:
    by_cell: dict[Cell, Counter[int]] = {}
    for one in new:
        by_cell.setdefault((minute, one.stage, one.variant), Counter())[one.bucket] += 1
    return {cell: MinuteUsers(_all_of(events), _most(events)) for cell, events in by_cell.items()}


def _all_of(events: Mapping[int, int]) -> ClusterSums:
    requests, squared = float(sum(events.values())), float(sum(one**2 for one in events.values()))
    return ClusterSums(requests, squared, requests, squared, squared, requests)


def _most(events: Mapping[int, int]) -> Mapping[int, int]:
    ranked = sorted(events.items(), key=lambda one: (-one[1], one[0]))
    return dict(sorted(ranked[:MOST]))


def _cluster(sums: UnitSums | MinuteSums) -> ClusterSums:
    return ClusterSums(*[getattr(sums, one.name) for one in fields(ClusterSums)])
