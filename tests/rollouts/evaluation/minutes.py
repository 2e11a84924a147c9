"""Minutes of made-up counts for tests of the evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from rollouts.evaluation import ArmCounts, MinuteCounts, Policy, State, UserCounts, advance, initial_state
from rollouts.evaluation.statistics.grid import bin_of
from rollouts.states import DEFAULT_STAGES

USUAL_MS = {bin_of(milliseconds): 20 for milliseconds in range(100, 1100, 100)}
USUAL_COST = {bin_of(cost * 1e6): 10 for cost in range(1, 101)}


WEIGHTS = tuple(stage.weight for stage in DEFAULT_STAGES)


def arm(
    requests: int,
    errors: int = 0,
    *,
    unanswered: int | None = None,
    answered: int | None = None,
    units: int | None = None,
    ms: Sequence[int] = (),
    usd: Sequence[str] = (),
    reasons: Mapping[str, int] | None = None,
    users: UserCounts | None = None,
    **counts: int,
) -> ArmCounts:
    """Returns the counts of one arm, whose errors are unanswered, and whose other requests are answered, unless other
    numbers are given; `ms` and `usd` are the values of single requests, `counts` further sums."""
    gone = errors if unanswered is None else unanswered
    latency: dict[int, int] = {}
    for value in ms:
        latency[bin_of(value)] = latency.get(bin_of(value), 0) + 1
    cost: dict[int, int] = {}
    for text in usd:
        number = bin_of(int(Decimal(text).scaleb(10)))
        cost[number] = cost.get(number, 0) + 1
    return ArmCounts(
        requests=requests,
        unanswered=gone,
        judged=requests,
        errors=errors,
        answered=requests - max(errors, gone) if answered is None else answered,
        units=requests if units is None else units,
        latency=latency,
        latency_ms=sum(ms),
        cost=cost,
        cost_usd=sum(map(Decimal, usd), Decimal(0)),
        reasons=reasons or {},
        users=users or UserCounts(),
        **counts,  # type: ignore[arg-type]  # they are numbers all
    )


def start(policy: Policy | None = None, *, weights: Sequence[int] = WEIGHTS, sticky: bool = False) -> State:
    return initial_state(policy or Policy(), latency=USUAL_MS, cost=USUAL_COST, weights=weights, sticky=sticky)


def after_minutes(
    state: State, count: int, target: ArmCounts, baseline: ArmCounts, *, stage: int = 1, weight: int = 50
) -> State:
    for _ in range(count):
        minute = MinuteCounts(state.last_minute + 1, stage, weight, target, baseline)
        state = advance(state, minute)
    return state
