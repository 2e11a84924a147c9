"""Requests that are open for too long count at once, and only once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from analytics.queries.variants import UsualValues
from rollouts.evaluation import from_json, to_json
from rollouts.evaluation.statistics.grid import bin_of
from rollouts.models import Mode, Rollout, RolloutMinute
from rollouts.open_requests.lists import OpenRequest
from rollouts.open_requests.still_open import MAX_REMEMBERED, Counted, max_open_time, overdue, still_remembered
from rollouts.states import Stage
from tests.factories.rollouts import make_rollout
from tests.rollouts.replay import replayed_figures
from tests.rollouts.request_log import RequestLog, begun, this_minute
from tests.rollouts.test_recorded import looked

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def open_request(age: timedelta, *, now: datetime = NOW, **values: Any) -> OpenRequest:
    defaults: dict[str, Any] = {
        "request_id": str(uuid4()),
        "rollout_id": str(uuid4()),
        "stage": 1,
        "variant": "target",
        "alloc_unit": 7,
        "arrived_us": int((now - age).timestamp() * 1_000_000),
    }
    return OpenRequest(**{**defaults, **values})


def counted(age: timedelta) -> Counted:
    return Counted(uuid4(), int((NOW - age).timestamp() * 1_000_000), 1, "target")


def found(*requests: OpenRequest, remembered: tuple[Counted, ...] = ()) -> list[str]:
    new = overdue(requests, remembered, now=NOW, max_open=MINUTE, stages={1, 2})
    return [str(one.request_id) for one in new]


@pytest.mark.parametrize(("cap_ms", "seconds"), [(None, 60), (0.0, 60), (29_000.0, 60), (45_000.0, 90)])
def test_max_open_time__twice_what_one_in_a_hundred_exceeds__a_minute_at_least(
    cap_ms: float | None, seconds: int
) -> None:
    assert max_open_time(cap_ms) == timedelta(seconds=seconds)


def test_overdue__older_than_the_limit__the_oldest_first() -> None:
    young, due, old = open_request(MINUTE - timedelta(microseconds=1)), open_request(MINUTE), open_request(5 * MINUTE)
    assert found(young, due, old) == [old.request_id, due.request_id]


def test_overdue__of_no_arm_or_stage_that_there_is__left_alone() -> None:
    assert found(open_request(5 * MINUTE, stage=3), open_request(5 * MINUTE, variant="")) == []


def test_overdue__listed_twice_or_counted_before__once() -> None:
    one, before = open_request(5 * MINUTE), counted(9 * MINUTE)
    again = open_request(9 * MINUTE, request_id=str(before.request_id))
    assert found(one, one, again, remembered=(before,)) == [one.request_id]


def test_overdue__more_than_can_be_remembered__the_oldest_whatever_their_arm() -> None:
    arms = ("target", "baseline")
    requests = [open_request(timedelta(minutes=2 + i % 9), variant=arms[i % 2]) for i in range(MAX_REMEMBERED)]
    remembered = tuple(counted(9 * MINUTE) for _ in range(10))
    oldest = sorted(requests, key=lambda one: (one.arrived_us, UUID(one.request_id)))[: MAX_REMEMBERED - 10]
    assert found(*requests, remembered=remembered) == [one.request_id for one in oldest]


def test_still_remembered__row_read_before_or_a_day_old__forgotten() -> None:
    waits, came, comes, lost = (counted(age) for age in (5 * MINUTE, 6 * MINUTE, 7 * MINUTE, timedelta(days=1)))
    start = NOW - MINUTE
    recorded = {came.request_id: start - timedelta(milliseconds=1), comes.request_id: start}
    assert still_remembered([waits, came, comes, lost], recorded, start=start, now=NOW) == (waits, comes)


def test_counted__as_json__read_back_the_same() -> None:
    one = counted(MINUTE)
    assert from_json(Counted, to_json(one)) == one


@pytest.mark.django_db
@pytest.mark.usefixtures("still_clock")
class TestEvaluation:
    @pytest.fixture
    def rollout(self) -> Rollout:
        stages = [Stage(50, 600, 0), Stage(100, 0, 0)]
        return begun(make_rollout(started=True, mode=Mode.AUTO, stages=stages), 10)

    def counts(self, rollout: Rollout) -> list[tuple[int, int, int]]:
        """Returns the target's minute, requests and unanswered requests."""
        return [
            (
                int((this_minute() - row.minute) / MINUTE),
                row.counts["target"]["requests"],
                row.counts["target"]["unanswered"],
            )
            for row in RolloutMinute.objects.filter(rollout=rollout).order_by("minute")
        ]

    def test_open_for_long__counted_in_the_latest_minute_and_its_row_left_out(
        self, log: RequestLog, rollout: Rollout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        waiting = open_request(3 * MINUTE, now=datetime.now(UTC), rollout_id=str(rollout.pk))
        log.open.append(waiting)
        key = UUID(waiting.request_id)

        row = looked(rollout, monkeypatch, ago=3)
        assert self.counts(rollout) == [(4, 1, 1)]
        assert row.verdict["counts"]["target"]["reasons"] == {"still_open": 1}
        assert row.verdict["sample_ratio"]["target"] == 1
        # The request is still open a minute later and does not count again.
        row = looked(rollout, monkeypatch, ago=2)
        assert self.counts(rollout) == [(4, 1, 1)]
        # Its row comes and is left out by the next evaluation; then the request is forgotten.
        log.open.clear()
        log.recorded[key] = this_minute() - MINUTE - timedelta(seconds=5)
        row = looked(rollout, monkeypatch, ago=1)
        assert [one["request_id"] for one in row.counted_open] == [waiting.request_id]
        row = looked(rollout, monkeypatch, ago=0)
        assert row.counted_open == []
        assert log.left_out == [{key}, {key}, {key}, set()]
        assert replayed_figures(rollout, row.verdict) == row.verdict

    def test_row_is_there_already__not_counted_while_open(
        self, log: RequestLog, rollout: Rollout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        waiting = open_request(3 * MINUTE, now=datetime.now(UTC), rollout_id=str(rollout.pk))
        log.open.append(waiting)
        log.recorded[UUID(waiting.request_id)] = datetime.now(UTC)
        row = looked(rollout, monkeypatch, ago=0)
        assert (self.counts(rollout), row.counted_open, log.left_out) == ([], [], [set()])

    def test_slow_config__waits_for_twice_what_one_in_a_hundred_exceeds(
        self, log: RequestLog, rollout: Rollout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log.usual = UsualValues({bin_of(120_000): 1000}, {})
        log.open.append(open_request(3 * MINUTE, now=datetime.now(UTC), rollout_id=str(rollout.pk)))
        looked(rollout, monkeypatch, ago=1)
        assert self.counts(rollout) == []
        log.open.append(open_request(5 * MINUTE, now=datetime.now(UTC), rollout_id=str(rollout.pk)))
        looked(rollout, monkeypatch, ago=0)
        assert self.counts(rollout) == [(1, 1, 1)]

    def test_target_that_never_answers__rolled_back_before_any_row_came(
        self, log: RequestLog, rollout: Rollout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log.add(rollout, 1, baseline=(40, 0))
        for _ in range(40):
            log.open.append(open_request(2 * MINUTE, now=datetime.now(UTC), rollout_id=str(rollout.pk)))
        row = looked(rollout, monkeypatch, ago=0)
        rollout.refresh_from_db()
        assert (rollout.status, row.verdict["metrics"]["unanswered"]["status"]) == ("rolled_back", "failing")
        assert "no answer for too long (40)" in row.verdict["explanation"]
