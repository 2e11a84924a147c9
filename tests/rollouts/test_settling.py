"""The minutes in which a stage settles: latency and cost are not judged in them."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rollouts.evaluation import MinuteCounts, State, from_json
from rollouts.models import Rollout, RolloutMinute, RolloutTransition
from rollouts.services import pause_rollout, promote_rollout, start_rollout
from rollouts.states import Stage
from rollouts.verdicts.evaluate import evaluate_rollout
from rollouts.verdicts.recorded import settling_of
from tests.factories.analytics import store_as_of_then
from tests.factories.rollouts import make_rollout
from tests.rollouts.automatic import evaluation
from tests.rollouts.replay import replayed_figures, replayed_state
from tests.rollouts.request_log import begun, this_minute
from tests.rollouts.test_recorded import came

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]

_MOVES = {"start": start_rollout, "pause": pause_rollout, "promote": promote_rollout}


def moved(rollout: Rollout, *moves: tuple[str, float]) -> Rollout:
    """Returns the rollout after these moves, each of them so many minutes ago."""
    for move, ago in moves:
        _MOVES[move](project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")
        latest = RolloutTransition.objects.filter(rollout=rollout).latest("pk")
        RolloutTransition.objects.filter(pk=latest.pk).update(created_at=minutes_ago(ago))
    rollout.refresh_from_db()
    return rollout


def minutes_ago(ago: float) -> datetime:
    return this_minute() - timedelta(minutes=ago)


def settled(rollout: Rollout, stage: int, *agos: int) -> list[bool]:
    """Returns whether the stage settles in the minutes that began so many minutes ago."""
    settles = settling_of(rollout, {one.number: one for one in rollout.stages.all()})
    return [settles(int(minutes_ago(ago).timestamp()) // 60, stage) for ago in agos]


def test_settling__begun_within_a_minute__until_its_minutes_have_passed() -> None:
    rollout = moved(make_rollout(stages=[Stage(50, 60, 0, 3), Stage(100, 0, 0)]), ("start", 29.5))
    assert settled(rollout, 1, 30, 29, 28, 27, 26, 25) == [True, True, True, True, False, False]


def test_settling__none__never() -> None:
    rollout = moved(make_rollout(stages=[Stage(50, 60, 0), Stage(100, 60, 0, 3)]), ("start", 30))
    assert settled(rollout, 1, 30, 29) == [False, False]


def test_settling__minute_before_the_start_by_the_stores_clock__settles() -> None:
    rollout = moved(make_rollout(stages=[Stage(50, 60, 0, 3)]), ("start", 30))
    assert settled(rollout, 1, 31) == [True]


def test_settling__after_a_pause__begins_anew() -> None:
    rollout = moved(make_rollout(stages=[Stage(50, 60, 0, 2)]), ("start", 30), ("pause", 20), ("start", 10))
    assert settled(rollout, 1, 30, 29, 28, 20, 15, 11) == [True, True, False, False, False, False]
    assert settled(rollout, 1, 10, 9, 8) == [True, True, False]


def test_settling__paused_or_promoted_while_it_settles__its_late_rows_are_of_that_time() -> None:
    stages = [Stage(10, 60, 0, 5), Stage(50, 60, 0, 5), Stage(100, 0, 0)]
    paused = moved(make_rollout(stages=stages), ("start", 30), ("pause", 28))
    assert settled(paused, 1, 29, 20, 1) == [True, True, True]
    promoted = moved(make_rollout(stages=stages), ("start", 30), ("promote", 28))
    assert settled(promoted, 1, 20, 1) == [True, True]
    assert settled(promoted, 2, 28, 24, 23) == [True, True, False]


def test_settling__promoted_while_paused__from_the_resumption_on() -> None:
    stages = [Stage(10, 60, 0, 5), Stage(50, 60, 0, 5)]
    rollout = moved(make_rollout(stages=stages), ("start", 30), ("pause", 20), ("promote", 15), ("start", 10))
    assert settled(rollout, 2, 10, 6, 5) == [True, True, False]


@pytest.mark.usefixtures("clickhouse")
def test_recorded__rows_while_settling_late_and_afterwards__flagged_and_replayed(spool: Path) -> None:
    stages = [Stage(50, 600, 0, 2), Stage(60, 600, 0, 3), Stage(100, 0, 0)]
    rollout = moved(make_rollout(stages=stages), ("start", 20), ("promote", 10))
    begun(rollout, 20)
    store_as_of_then(
        spool,
        came(rollout, 19.5),
        came(rollout, 15.5),
        came(rollout, 15.5, variant="baseline", latency_ms=900),
        came(rollout, 9.5, stage=2),
        came(rollout, 9.5, stage=2, variant="baseline"),
        # The row was recorded 9 minutes ago, when the first stage was over.
        came(rollout, 11.5, latency_ms=150_000),
        came(rollout, 5.5, stage=2),
    )

    assert evaluate_rollout(rollout.pk) is not None

    rows = RolloutMinute.objects.filter(rollout=rollout).order_by("minute", "stage")
    flags = [(row.stage, from_json(MinuteCounts, row.counts).settling) for row in rows]
    assert flags == [(1, True), (1, False), (2, True), (1, False), (2, False)]
    stored = evaluation(rollout)
    assert replayed_state(rollout) == from_json(State, stored.state)
    assert replayed_figures(rollout, stored.verdict) == stored.verdict
