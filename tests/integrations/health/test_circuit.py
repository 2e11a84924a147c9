from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.health.circuit import (
    FIRST_OPEN_SECONDS,
    JITTER,
    MAX_OPEN_SECONDS,
    MAX_RETRY_AFTER,
    OUTCOMES_TO_OPEN,
    Circuit,
    CircuitRecord,
    Outcomes,
)
from integrations.health.targets import CircuitState
from integrations.providers.errors import FailureKind

NOW = 1_700_000_000.0
REQUEST_REFUSALS = [FailureKind.REJECTED, FailureKind.CONTEXT_LENGTH, FailureKind.CONTENT_FILTER]
COUNTED = [kind for kind in FailureKind if kind not in REQUEST_REFUSALS]


def fail(circuit: Circuit, now: float, kind: FailureKind = FailureKind.UNAVAILABLE, **given: float) -> bool:
    started = given.get("started", now - 0.1)
    return circuit.note_failure(
        now, kind, started=started, draw=given.get("draw", 0.0), retry_after=given.get("retry_after")
    )


def opened(now: float = NOW) -> Circuit:
    circuit = Circuit()
    for _ in range(OUTCOMES_TO_OPEN):
        fail(circuit, now)
    return circuit


@pytest.mark.parametrize("kind", COUNTED)
def test_circuit__five_failures__opens_with_the_fifth(kind: FailureKind) -> None:
    circuit = Circuit()

    assert [fail(circuit, NOW, kind) for _ in range(5)] == [False] * 4 + [True]
    assert circuit.state(NOW + FIRST_OPEN_SECONDS - 0.01) is CircuitState.OPEN
    assert circuit.state(NOW + FIRST_OPEN_SECONDS) is CircuitState.HALF_OPEN


@pytest.mark.parametrize("kind", REQUEST_REFUSALS)
def test_circuit__rejected_requests__never_count(kind: FailureKind) -> None:
    circuit = Circuit()

    assert not any(fail(circuit, NOW, kind, retry_after=100.0) for _ in range(100))
    assert circuit.closed


def test_circuit__fewer_than_half_failed__stays_closed() -> None:
    circuit = Circuit()
    for _ in range(11):
        circuit.note_success(NOW, started=NOW)
    assert not any(fail(circuit, NOW + 1) for _ in range(10))

    assert fail(circuit, NOW + 1)


def test_circuit__failures_further_apart_than_the_window__stays_closed() -> None:
    circuit = Circuit()

    assert not any(fail(circuit, NOW + 8 * i) for i in range(50))


def test_circuit__success_of_the_probe__closes_it_and_forgets() -> None:
    circuit = opened()
    later = NOW + FIRST_OPEN_SECONDS

    assert circuit.note_success(later + 1, started=later)
    assert circuit.state(later + 1) is CircuitState.CLOSED
    assert not any(fail(circuit, later + 2) for _ in range(4))


def test_circuit__success_of_a_request_from_before__changes_nothing() -> None:
    circuit = opened()

    assert not circuit.note_success(NOW + 6, started=NOW - 1)
    assert circuit.state(NOW + 6) is CircuitState.HALF_OPEN


def test_circuit__late_failures_of_requests_from_before__do_not_lengthen_the_rest() -> None:
    circuit = opened()
    before = circuit.record

    assert not fail(circuit, NOW + 1)
    assert not fail(circuit, NOW + 6, started=NOW - 1)
    assert circuit.record == before


def test_circuit__failing_probes__rest_doubles_up_to_a_minute() -> None:
    circuit, now, rests = opened(), NOW, []
    for _ in range(1200):
        rests.append(circuit.record.open_until - now)
        now = circuit.record.open_until
        assert fail(circuit, now + 0.5, started=now)
        now += 0.5

    assert rests[:5] == pytest.approx([5, 10, 20, 40, 60])
    assert rests[4:] == pytest.approx([MAX_OPEN_SECONDS] * len(rests[4:]))


@settings(deadline=None)
@given(st.floats(0, 1))
def test_circuit__any_draw__shortens_the_rest_by_up_to_a_fifth(draw: float) -> None:
    circuit = Circuit()
    for _ in range(OUTCOMES_TO_OPEN):
        fail(circuit, NOW, draw=draw)

    rest = circuit.record.open_until - NOW
    assert FIRST_OPEN_SECONDS * (1 - JITTER) - 1e-6 <= rest <= FIRST_OPEN_SECONDS + 1e-6


@pytest.mark.parametrize(
    ("retry_after", "rest"),
    [(5.1, 5.1), (90.0, 90.0), (MAX_RETRY_AFTER, MAX_RETRY_AFTER), (86400.0, MAX_RETRY_AFTER)],
)
def test_circuit__long_retry_after__rests_at_once_for_that_long(retry_after: float, rest: float) -> None:
    circuit = Circuit()

    assert fail(circuit, NOW, FailureKind.RATE_LIMITED, retry_after=retry_after)
    assert circuit.state(NOW + rest - 0.01) is CircuitState.OPEN
    assert circuit.state(NOW + rest + 0.01) is CircuitState.HALF_OPEN


def test_circuit__short_retry_after__counts_as_one_failure() -> None:
    circuit = Circuit()

    assert [fail(circuit, NOW, FailureKind.RATE_LIMITED, retry_after=5.0) for _ in range(5)] == [False] * 4 + [True]


def test_circuit__many_answers_with_one_retry_after__are_one_change() -> None:
    circuit = Circuit()

    changes = [fail(circuit, NOW + i / 100, FailureKind.RATE_LIMITED, retry_after=30.0) for i in range(50)]
    assert changes == [True] + [False] * 49


def test_circuit__retry_after_while_open__lengthens_the_rest_and_never_shortens_it() -> None:
    circuit = opened()

    assert fail(circuit, NOW + 1, FailureKind.RATE_LIMITED, retry_after=60.0)
    assert circuit.record.open_until == pytest.approx(NOW + 61)
    assert not fail(circuit, NOW + 2, FailureKind.RATE_LIMITED, retry_after=10.0)
    assert circuit.record.open_until == pytest.approx(NOW + 61)


def test_circuit__failures_seen_by_others__count_like_ones_own() -> None:
    circuit = Circuit()
    fail(circuit, NOW)
    fail(circuit, NOW)

    assert not circuit.note_others(NOW, Outcomes(NOW, 2, 2), draw=0)
    assert circuit.note_others(NOW, Outcomes(NOW, 1, 1), draw=0)
    assert not circuit.note_others(NOW, Outcomes(NOW, 9, 9), draw=0)


def test_circuit__failures_others_saw_before_it_closed__are_passed_over() -> None:
    circuit = opened()
    circuit.note_success(NOW + 6, started=NOW + 5.5)

    assert not circuit.note_others(NOW + 6.2, Outcomes(NOW + 5.9, 50, 50), draw=0)
    assert circuit.note_others(NOW + 6.4, Outcomes(NOW + 6.1, 50, 50), draw=0)


def test_take_own__counts_once_what_was_noted_here_since_the_last_change() -> None:
    circuit = Circuit()
    fail(circuit, NOW)
    circuit.note_success(NOW + 1, started=NOW)
    circuit.note_others(NOW + 1, Outcomes(NOW, 9, 1), draw=0)

    assert circuit.take_own() == (NOW, 2, 1)
    assert circuit.take_own() is None
    assert opened().take_own() is None


OUTCOMES = st.lists(
    st.tuples(st.floats(0, 20), st.sampled_from([None, *FailureKind]), st.floats(0, 5), st.none() | st.floats(0, 900)),
    max_size=60,
)


@settings(deadline=None)
@given(OUTCOMES, st.randoms(use_true_random=False))
def test_circuit__any_history__keeps_its_promises(
    outcomes: list[tuple[float, FailureKind | None, float, float | None]], chance: random.Random
) -> None:
    circuit, now = Circuit(), NOW
    for pause, kind, took, retry_after in outcomes:
        now += pause
        before = circuit.record
        if kind is None:
            changed = circuit.note_success(now, started=now - took)
        else:
            changed = circuit.note_failure(now, kind, started=now - took, draw=chance.random(), retry_after=retry_after)
        assert changed == (circuit.record != before)
        assert circuit.record.version > before.version or not changed
        if changed and circuit.closed:
            assert kind is None
        if changed and not circuit.closed:
            assert 4 <= circuit.record.open_until - now <= MAX_RETRY_AFTER + 1e-3


RECORDS = st.builds(
    CircuitRecord, st.integers(0, 5), st.integers(0, 3), st.floats(0, 10).map(float), st.floats(0, 10).map(float)
)


@settings(deadline=None)
@given(st.lists(RECORDS, max_size=8), st.randoms(use_true_random=False))
def test_adopt__records_in_any_order__all_end_with_the_same(
    records: list[CircuitRecord], chance: random.Random
) -> None:
    def last(order: list[CircuitRecord]) -> CircuitRecord:
        circuit = Circuit()
        for record in order:
            circuit.adopt(record)
        return circuit.record

    shuffled = records[:]
    chance.shuffle(shuffled)
    assert last(records) == last(shuffled)


def test_change__of_an_adopted_record__is_later_whatever_this_clock_says() -> None:
    ahead = opened(NOW + 3600)
    circuit = Circuit()
    circuit.adopt(ahead.record)

    assert circuit.note_success(NOW + 3600.5, started=NOW + 3600.2)
    assert circuit.record > ahead.record
    assert ahead.adopt(circuit.record)
    assert ahead.closed
