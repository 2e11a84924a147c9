from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.health.order import ENOUGH_SAMPLES, PROBE_SHARE, order_by_health, order_by_latency
from integrations.health.targets import UNKNOWN, CircuitState, Target, TargetHealth
from tests.tables.cases import tabled


def warm(p50: float, *, samples: int = 100, degraded: bool = False) -> TargetHealth:
    return TargetHealth(CircuitState.CLOSED, samples, 0.5 if degraded else 0.0, p50, p50, p50, degraded)


def circuit(state: CircuitState, p50: float = 1.0) -> TargetHealth:
    return replace(warm(p50, degraded=True), circuit=state)


OPEN, HALF_OPEN = circuit(CircuitState.OPEN), circuit(CircuitState.HALF_OPEN)

HEALTHS = st.lists(
    st.builds(
        warm,
        st.floats(1, 60_000),
        samples=st.sampled_from([1, ENOUGH_SAMPLES - 1, ENOUGH_SAMPLES, 500]),
        degraded=st.booleans(),
    )
    | st.just(UNKNOWN)
    | st.builds(circuit, st.sampled_from([CircuitState.OPEN, CircuitState.HALF_OPEN]), st.floats(1, 60_000)),
    max_size=8,
)
DRAWS = st.floats(0, 1, exclude_max=True)


def latency_order(healths: list[TargetHealth], draw: float = 0.99) -> list[int]:
    targets = [Target(i, "provider", "model") for i in range(len(healths))]
    return [target.integration_id for target in order_by_latency(targets, lambda t: healths[t.integration_id], draw)]


def health_order(healths: list[TargetHealth]) -> list[int]:
    targets = [Target(i, "provider", "model") for i in range(len(healths))]
    return [target.integration_id for target in order_by_health(targets, lambda t: healths[t.integration_id])]


def is_cold(health: TargetHealth) -> bool:
    if health.circuit is not CircuitState.CLOSED:
        return health.circuit is CircuitState.HALF_OPEN
    return not health.degraded and health.samples < ENOUGH_SAMPLES


def is_warm(health: TargetHealth) -> bool:
    closed = health.circuit is CircuitState.CLOSED
    return closed and not health.degraded and health.samples >= ENOUGH_SAMPLES


@settings(deadline=None)
@given(HEALTHS, DRAWS)
def test_orders__any_healths__keep_every_target_once(healths: list[TargetHealth], draw: float) -> None:
    assert sorted(latency_order(healths, draw)) == sorted(health_order(healths)) == list(range(len(healths)))


@settings(deadline=None)
@given(HEALTHS, DRAWS)
def test_orders__any_healths__open_circuits_are_last(healths: list[TargetHealth], draw: float) -> None:
    for order in (latency_order(healths, draw), health_order(healths)):
        broken = [healths[i].circuit is CircuitState.OPEN for i in order]
        assert broken == sorted(broken)


@settings(deadline=None)
@given(HEALTHS, DRAWS)
def test_latency_order__any_healths__warm_ones_by_median(healths: list[TargetHealth], draw: float) -> None:
    medians = [healths[i].p50_ms or 0 for i in latency_order(healths, draw) if is_warm(healths[i])]

    assert medians == sorted(medians)


@settings(deadline=None)
@given(HEALTHS, DRAWS)
def test_latency_order__cold_ones__go_first_exactly_on_the_share(healths: list[TargetHealth], draw: float) -> None:
    cold = [i for i, health in enumerate(healths) if is_cold(health)]
    others = any(is_warm(health) for health in healths)
    order = latency_order(healths, draw)

    if cold and others:
        assert (order[0] in cold) == (draw < PROBE_SHARE)
    if cold and draw < PROBE_SHARE:
        assert order[0] == cold[min(int(draw / PROBE_SHARE * len(cold)), len(cold) - 1)]


def test_latency_order__cold_ones__are_probed_equally_often() -> None:
    healths = [warm(10), UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]
    first = [latency_order(healths, (i + 0.5) / 1000)[0] for i in range(1000)]

    assert {i: first.count(i) for i in range(5)} == {0: 900, 1: 25, 2: 25, 3: 25, 4: 25}


def test_latency_order__nothing_known__keeps_the_given_order() -> None:
    assert latency_order([UNKNOWN] * 4) == [0, 1, 2, 3]


def test_latency_order__mixed__is_warm_cold_degraded_broken() -> None:
    healths = [OPEN, warm(5, degraded=True), UNKNOWN, warm(300), HALF_OPEN, warm(20)]

    assert latency_order(healths) == [5, 3, 2, 4, 1, 0]


def test_latency_order__few_samples__do_not_rank() -> None:
    assert latency_order([warm(400), warm(1, samples=ENOUGH_SAMPLES - 1)]) == [0, 1]
    assert latency_order([warm(400), warm(1, samples=ENOUGH_SAMPLES)]) == [1, 0]


@tabled
def test_health_order__cases(healths: list[TargetHealth], order: list[int]) -> None:
    assert health_order(healths) == order


@settings(deadline=None)
@given(st.lists(st.floats(1000, 1900), min_size=1, max_size=6))
def test_health_order__differences_within_a_doubling__keep_the_given_order(medians: list[float]) -> None:
    assert health_order([warm(median) for median in medians]) == list(range(len(medians)))


@settings(deadline=None)
@given(st.lists(st.floats(1, 60_000), min_size=1, max_size=6))
def test_health_order__first_of_healthy_ones__is_within_a_doubling_of_the_best(medians: list[float]) -> None:
    first = health_order([warm(median) for median in medians])[0]

    assert medians[first] <= 2 * max(min(medians), 100)
