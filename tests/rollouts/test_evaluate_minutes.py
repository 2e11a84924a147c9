"""The minutes that an evaluation reads: which ones, and in which order."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from analytics.queries.variants import UsualValues
from rollouts.evaluation import State, from_json
from rollouts.models import RolloutEvaluation, RolloutMinute
from rollouts.services import promote_rollout
from rollouts.states import Stage, Transition
from rollouts.verdicts import evaluate
from rollouts.verdicts.evaluate import closed_until, evaluate_rollout, evaluate_running_rollouts
from tests.rollouts.automatic import automatic, evaluation
from tests.rollouts.replay import replayed_figures, replayed_state
from tests.rollouts.request_log import RequestLog, this_minute
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock", "info_logs")]


def test_requests_of_the_stage_before__do_not_count(log: RequestLog) -> None:
    rollout = automatic(Stage(10, 0, 0), Stage(20, 0, 5), Stage(100, 0, 0))
    log.add(rollout, 5, target=(10, 0), baseline=(90, 0))
    promote_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")
    judgement = evaluate_rollout(rollout.pk)
    assert judgement is not None
    assert judgement.verdict.reason == "minimum_requests"
    figures = evaluation(rollout).verdict
    assert replayed_figures(rollout, figures) == figures


def test_stragglers_of_the_stage_before__judged_as_requests_of_their_stage(log: RequestLog) -> None:
    rollout = automatic(Stage(10, 0, 0), Stage(20, 99, 0), Stage(100, 0, 0))
    promote_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")
    log.add(rollout, 6, stage=1, target=(3, 0), baseline=(9, 0))
    log.add(rollout, 6, stage=2, target=(5, 0), baseline=(9, 0))
    log.add(rollout, 5, stage=1, target=(1, 0), baseline=(1, 0))
    log.add(rollout, 5, stage=2, target=(7, 0), baseline=(9, 0))
    log.add(rollout, 5, stage=9, target=(7, 0))

    evaluate_rollout(rollout.pk)

    rows = RolloutMinute.objects.filter(rollout=rollout)
    assert [((this_minute() - row.minute).total_seconds() // 60, row.stage) for row in rows] == [
        (6, 1),
        (6, 2),
        (5, 1),
        (5, 2),
    ]
    row = evaluation(rollout)
    assert (row.verdict["stage_requests"], row.verdict["target_requests"]) == (12, 16)
    assert replayed_figures(rollout, row.verdict) == row.verdict


def test_stored_rows__replayed__the_same_state_to_the_last_digit(log: RequestLog) -> None:
    rollout = automatic(Stage(30, 600, 0), Stage(100, 0, 0), minutes_ago=40)
    log.usual = UsualValues({20: 400, 25: 90, 31: 10}, {60: 500})
    for ago in range(39, 0, -1):
        log.add(rollout, ago, target=(7, ago % 2), baseline=(13, ago % 3 == 0), slower=1.03)
    for later in (20, 0):
        with pytest.MonkeyPatch.context() as patched:
            until = this_minute() - timedelta(minutes=later)
            patched.setattr(evaluate, "closed_until", lambda _, until=until: until)
            evaluate_rollout(rollout.pk)
    row = evaluation(rollout)
    assert RolloutMinute.objects.filter(rollout=rollout).count() == 39
    assert replayed_state(rollout) == from_json(State, row.state)
    assert replayed_figures(rollout, row.verdict) == row.verdict


def test_store_still_inserting__minutes_wait_until_all_rows_of_them_can_be_read(
    log: RequestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = automatic()
    monkeypatch.setattr(evaluate, "visible_until", lambda: this_minute() - timedelta(minutes=4, seconds=-3))
    judgement = evaluate_rollout(rollout.pk)
    assert judgement is not None
    assert judgement.through == this_minute() - timedelta(minutes=4)


def test_another_formula__not_judged_and_told(log: RequestLog, caplog: pytest.LogCaptureFixture) -> None:
    rollout = automatic()
    RolloutEvaluation.objects.filter(rollout=rollout).update(verdict={"formula": 1})
    assert evaluate_running_rollouts() == []
    assert f"rollout.evaluation_failed rollout_id={rollout.pk}" in caplog.text
    assert "judged by formula 1, which this version does not have" in caplog.text
    with pytest.raises(CommandError, match="Roll it back and create it anew"):
        call_command("evaluate_rollouts", rollout=str(rollout.pk))


def test_long_absence__caught_up_by_days__decides_only_at_the_end(log: RequestLog) -> None:
    rollout = automatic(Stage(10, 0, 0), Stage(100, 0, 0), minutes_ago=60 * 24 * 2 + 30)
    looks = [evaluate_rollout(rollout.pk) for _ in range(4)]
    assert [look and look.moved for look in looks] == [None, None, Transition.PROMOTE, None]
    assert looks[3] is None


@tabled
def test_closed_until__lag__whole_minutes_before_it(settings: Settings, lag: int, now: str, closed: str) -> None:
    settings.ROLLOUT_EVALUATION_LAG_SECONDS = lag
    day = "2026-11-21T"
    assert closed_until(datetime.fromisoformat(f"{day}{now}+00:00")) == datetime.fromisoformat(f"{day}{closed}+00:00")
