"""The counts that an evaluation reads from records in ClickHouse: every request counts once, whenever it ends."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from analytics.request_log.record import Outcome, SpoolEntry
from rollouts.allocation import AllocationType
from rollouts.evaluation import ArmCounts, ClusterSums, Metric, MinuteCounts, State, from_json
from rollouts.evaluation.statistics.grid import bin_of
from rollouts.models import Rollout, RolloutEvaluation, RolloutMinute
from rollouts.open_requests.lists import OpenRequest
from rollouts.states import Stage
from rollouts.verdicts import evaluate, recorded
from rollouts.verdicts.evaluate import evaluate_rollout
from tests.factories.analytics import make_entry, store_as_of_then
from tests.factories.rollouts import make_rollout
from tests.rollouts.replay import replayed_figures, replayed_state
from tests.rollouts.request_log import begun, this_minute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse", "still_clock")]

FAILED: dict[str, Any] = {"outcome": Outcome.ERROR, "status_code": 503, "error_code": "provider_unavailable"}
NO_MODEL: dict[str, Any] = {"outcome": Outcome.ERROR, "status_code": 404, "error_code": "model_not_found"}
LIMITED: dict[str, Any] = {"outcome": Outcome.ERROR, "status_code": 429, "error_code": "requests_per_minute"}
HIT: dict[str, Any] = {"cache_status": "hit"}
USD = Decimal("0.0010000000")


@pytest.fixture
def rollout() -> Rollout:
    return begun(make_rollout(started=True, stages=[Stage(50, 600, 0), Stage(60, 600, 0), Stage(100, 0, 0)]), 10)


def came(rollout: Rollout, ago: float, *, stage: int = 1, variant: str = "target", **values: Any) -> SpoolEntry:
    """Returns a request that came so many minutes ago and took 200 ms."""
    fields: dict[str, Any] = {
        "ts": int((this_minute() - timedelta(minutes=ago)).timestamp() * 1_000_000),
        "project_id": str(rollout.project_id),
        "rollout_id": str(rollout.pk),
        "rollout_stage": stage,
        "variant": variant,
        "alloc_unit": 4_999,
        "latency_ms": 200,
        "ttft_ms": 100,
        "cost_usd": str(USD),
    }
    return make_entry(**{**fields, **values})


def looked(rollout: Rollout, monkeypatch: pytest.MonkeyPatch, *, ago: int) -> RolloutEvaluation:
    """Sets the clock so that the latest closed minute ended so many minutes ago."""
    monkeypatch.setattr(evaluate, "closed_until", lambda _: this_minute() - timedelta(minutes=ago))
    assert evaluate_rollout(rollout.pk) is not None
    return RolloutEvaluation.objects.get(rollout=rollout)


def minutes(rollout: Rollout) -> dict[tuple[int, int], MinuteCounts]:
    """Returns the minutes by how long ago each began, and its stage."""
    return {
        ((this_minute() - row.minute) // timedelta(minutes=1), row.stage): from_json(MinuteCounts, row.counts)
        for row in RolloutMinute.objects.filter(rollout=rollout)
    }


def answered(latency_ms: int, **values: Any) -> ArmCounts:
    return ArmCounts(
        judged=1,
        answered=1,
        latency={bin_of(latency_ms): 1},
        latency_ms=latency_ms,
        cost={bin_of(1e7): 1},
        cost_usd=USD,
        **values,
    )


def test_random__late_rows_hits_limits_and_open_requests__counted_by_hand(
    rollout: Rollout, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = came(rollout, 6.5, stage=2, latency_ms=int(4.75 * 60_000))
    monkeypatch.setattr(recorded, "open_requests", lambda _: [opened(waiting)])
    store_as_of_then(
        spool,
        came(rollout, 7.5),
        came(rollout, 7.5, **NO_MODEL),
        came(rollout, 7.5, **HIT),
        came(rollout, 7.5, **LIMITED),
        came(rollout, 7.5, question_cached=True),
        came(rollout, 7.5, question_cached=True, **FAILED),
        came(rollout, 7.5, variant="baseline"),
        came(
            rollout, 7.5, latency_ms=150_000, **FAILED
        ),  # The row was recorded 5 minutes ago, when the second stage had begun.
        came(rollout, 4.5, stage=2),
        came(rollout, 4.5, alloc_unit=0),
        came(rollout, 4.5, alloc_fallback=True),
    )

    first = looked(rollout, monkeypatch, ago=2)

    left_out = {"cache_hit": 1, "requests_per_minute": 1}
    target = answered(
        200,
        requests=2,
        unanswered=1,
        uncompared=2,
        uncompared_unanswered=1,
        units=6,
        reasons={"model_not_found": 1},
        left_out=left_out,
    )
    baseline = answered(200, requests=1, units=1)
    late = ArmCounts(
        requests=1,
        unanswered=1,
        judged=1,
        errors=1,
        units=1,
        reasons={"provider_failed": 1},
        left_out={"forced": 1, "other_unit": 1},
    )
    still_open = ArmCounts(requests=1, unanswered=1, units=1, reasons={"still_open": 1})
    counts = minutes(rollout)
    assert [(key, one.target, one.baseline) for key, one in sorted(counts.items(), reverse=True)] == [
        ((8, 1), target, baseline),
        ((5, 2), answered(200, requests=1, units=1), ArmCounts()),
        ((5, 1), late, ArmCounts()),
        ((3, 2), still_open, ArmCounts()),
    ]
    assert [one["request_id"] for one in first.counted_open] == [waiting.record.request_id]

    # The late answer adds its latency and cost only, because the request has been counted already.
    store_as_of_then(spool, waiting)
    second = looked(rollout, monkeypatch, ago=0)

    assert minutes(rollout)[2, 2].target == answered(int(4.75 * 60_000))
    totals = from_json(State, second.state).target
    assert (totals.requests, totals.unanswered, totals.answered) == (5, 3, 3)
    assert replayed_state(rollout) == from_json(State, second.state)
    assert replayed_figures(rollout, second.verdict) == second.verdict


def opened(entry: SpoolEntry) -> OpenRequest:
    row = entry.record
    return OpenRequest(row.request_id, row.rollout_id, row.rollout_stage, row.variant, row.alloc_unit, row.ts)


def test_sticky__users_units_and_clusters__counted_by_hand(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four of five users make five or more requests; one of them was in the target before the second stage."""
    stages = [Stage(10, 600, 0), Stage(50, 600, 0), Stage(100, 0, 0)]
    fields: dict[str, Any] = {"allocation_type": AllocationType.USER_STICKY, "stages": stages}
    rollout = begun(make_rollout(started=True, **fields), 10)

    def requests_of_unit(unit: int, *failed: bool, ago: float = 5.5) -> list[SpoolEntry]:
        variant = "target" if unit % 10_000 < 5_000 else "baseline"
        return [
            came(
                rollout,
                ago - number / 1000,
                stage=2,
                variant=variant,
                alloc_unit=unit,
                latency_ms=100 * (number + 1),
                **(FAILED if fails else {}),
            )
            for number, fails in enumerate(failed)
        ]

    store_as_of_then(
        spool,
        *requests_of_unit(10_999, *[False] * 5),  # Bucket 999 is in the target at 10 %.
        *requests_of_unit(11_000, True, False, True, False, False, True),
        *requests_of_unit(12_000, *[False] * 4),
        *requests_of_unit(15_000, *[False] * 3),
        *requests_of_unit(15_000, *[False] * 2, ago=3.5),
        *requests_of_unit(16_000, *[True] * 5),
    )

    row = looked(rollout, monkeypatch, ago=0)

    earlier, later = minutes(rollout)[6, 2], minutes(rollout)[4, 2]
    assert (earlier.target.units, earlier.baseline.units, later.baseline.units) == (3, 2, 0)
    assert (earlier.target.users.unanswered, earlier.target.users.errors) == ({2: 1}, {2: 1})
    # The second user's three answers are too few, so latency has no fifth value.
    assert earlier.target.users.latency == {}
    assert (earlier.baseline.users.unanswered, earlier.baseline.users.latency) == ({5: 1}, {})
    assert later.baseline.users.unanswered == {0: 1}
    # The value is the mean of 100, 200, 300 and of 100 and 200 two minutes later.
    assert later.baseline.users.latency == {bin_of(180): 1}
    # The sums are known at the end of the window and go with its last minute alone.
    assert (earlier.clusters, earlier.target_clusters) == ({}, {})
    sums = later.target_clusters[Metric.UNANSWERED]
    assert (sums.requests, sums.requests_squared) == (15, 25 + 36 + 16)
    assert (sums.total, sums.total_squared, sums.cross, sums.values_squared) == (3, 9, 18, 3)
    assert later.clusters[Metric.ERROR_RATE].total_squared == 25
    # The users of each minute by themselves, who count anew in the later one.
    own, theirs = earlier.target.by_user[Metric.UNANSWERED], later.baseline.by_user[Metric.UNANSWERED]
    assert (own.sums.requests, own.sums.requests_squared, own.sums.total_squared) == (15, 25 + 36 + 16, 9)
    assert (theirs.sums.requests, theirs.sums.total) == (2, 0)
    assert (own.events, theirs.events) == ({1_000: 3}, {})
    assert earlier.baseline.by_user[Metric.ERROR_RATE].events == {6_000: 5}
    assert earlier.target.by_user[Metric.LATENCY_AVERAGE].events == {}
    assert replayed_state(rollout) == from_json(State, row.state)


def test_sticky__open_and_recorded_failures_of_a_user__its_events_once_each(
    spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = [Stage(50, 600, 0), Stage(100, 0, 0)]
    rollout = begun(make_rollout(started=True, allocation_type=AllocationType.USER_STICKY, stages=stages), 10)
    hanging = [came(rollout, 6.5, alloc_unit=21_234, latency_ms=int(4.75 * 60_000), **FAILED) for _ in range(2)]
    monkeypatch.setattr(recorded, "open_requests", lambda _: [opened(one) for one in hanging])
    store_as_of_then(spool, came(rollout, 2.5, alloc_unit=21_234, **FAILED), came(rollout, 2.5, alloc_unit=30_001))

    looked(rollout, monkeypatch, ago=2)

    # Two of the user's requests are open and one failed; another user's request was answered.
    users = minutes(rollout)[3, 1].target.by_user
    assert users[Metric.UNANSWERED].events == {1_234: 3}
    assert users[Metric.UNANSWERED].sums == ClusterSums(4, 2**2 + 1 + 1, 3, 2**2 + 1, 2**2 + 1, 3)
    assert users[Metric.ERROR_RATE].events == {1_234: 1}

    store_as_of_then(spool, *hanging)
    row = looked(rollout, monkeypatch, ago=0)

    # The rows of the open requests are errors, and not unanswered once more.
    late = minutes(rollout)[2, 1].target.by_user
    assert (late[Metric.UNANSWERED].events, late[Metric.ERROR_RATE].events) == ({}, {1_234: 2})
    assert replayed_state(rollout) == from_json(State, row.state)


def test_sticky__three_hours_of_half_the_traffic__looks_at_all_users_of_the_stage(
    spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = [Stage(10, 600, 0), Stage(50, 600, 0), Stage(100, 0, 0)]
    rollout = begun(make_rollout(started=True, allocation_type=AllocationType.USER_STICKY, stages=stages), 200)

    def requests_of(unit: int, number: int, failed: int, ago: float) -> list[SpoolEntry]:
        variant = "target" if unit < 5_000 else "baseline"
        fields: dict[str, Any] = {"stage": 2, "variant": variant, "alloc_unit": unit}
        return [came(rollout, ago, **fields, **(FAILED if one < failed else {})) for one in range(number)]

    store_as_of_then(
        spool,
        # Bucket 999 was in the target before.
        *requests_of(999, 3, 1, ago=199.5),
        *requests_of(999, 5, 1, ago=15.5),
        *requests_of(3_000, 4, 4, ago=15.5),
        *requests_of(6_000, 6, 2, ago=100.5),
        *requests_of(7_000, 5, 0, ago=15.5),
    )

    looked(rollout, monkeypatch, ago=198)
    row = looked(rollout, monkeypatch, ago=10)

    cohorts = {place: one.cohort for place, one in minutes(rollout).items() if one.cohort}
    assert set(cohorts) == {(16, 2)}
    [cohort] = cohorts.values()
    assert (cohort["target"].errors, cohort["baseline"].errors) == ({250: 1}, {333: 1, 0: 1})
    # The mean of the answered requests, of which one user has four.
    assert (cohort["target"].latency, cohort["baseline"].latency) == ({bin_of(200): 1}, {bin_of(200): 1})
    assert from_json(State, row.state).looks == 1
    assert replayed_state(rollout) == from_json(State, row.state)
