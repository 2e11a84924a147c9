"""The minutes that an evaluation reads: which ones, in which order, and by which formula."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from analytics.queries.variants import UsualValues
from rollouts import evaluate
from rollouts.evaluate import closed_until, evaluate_rollout, evaluate_running_rollouts
from rollouts.evaluation import formula_of, from_json
from rollouts.models import RolloutEvaluation, RolloutMinute
from rollouts.replay import replayed_figures, replayed_state
from rollouts.services import promote_rollout
from rollouts.states import Stage, Transition
from tests.factories.rollouts import make_rollout
from tests.rollouts.automatic import automatic, evaluation, of_the_first_formula
from tests.rollouts.request_log import RequestLog, this_minute

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


@pytest.mark.parametrize(("formula", "judged"), [(1, [(6, 1), (6, 2), (5, 2)]), (2, [(6, 1), (6, 2), (5, 1), (5, 2)])])
def test_stragglers_of_the_stage_before__dropped_by_the_first_formula_only(
    log: RequestLog, formula: int, judged: list[tuple[int, int]]
) -> None:
    rollout = automatic(Stage(10, 0, 0), Stage(20, 99, 0), Stage(100, 0, 0))
    if formula == 1:
        of_the_first_formula(rollout)
    promote_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")
    log.add(rollout, 6, stage=1, target=(3, 0), baseline=(9, 0))
    log.add(rollout, 6, stage=2, target=(5, 0), baseline=(9, 0))
    log.add(rollout, 5, stage=1, target=(1, 0), baseline=(1, 0))
    log.add(rollout, 5, stage=2, target=(7, 0), baseline=(9, 0))
    log.add(rollout, 5, stage=9, target=(7, 0))

    evaluate_rollout(rollout.pk)

    rows = RolloutMinute.objects.filter(rollout=rollout)
    assert [((this_minute() - row.minute).total_seconds() // 60, row.stage) for row in rows] == judged
    row = evaluation(rollout)
    assert (row.verdict["formula"], row.verdict["stage_requests"]) == (formula, 12)
    assert row.verdict["target_requests"] == 15 + (formula == 2)
    assert replayed_figures(rollout, row.verdict) == row.verdict


@pytest.mark.parametrize("number", [1, 2])
def test_stored_rows__replayed__the_same_state_to_the_last_digit(log: RequestLog, number: int) -> None:
    rollout = automatic(Stage(30, 600, 0), Stage(100, 0, 0), minutes_ago=40)
    if number == 1:
        of_the_first_formula(rollout)
    log.usual = UsualValues({20: 400, 25: 90, 31: 10}, {60: 500})
    for ago in range(39, 0, -1):
        log.add(rollout, ago, target=(7, ago % 2), baseline=(13, ago % 3 == 0), slower=1.03)
    for later in (20, 0):
        with pytest.MonkeyPatch.context() as patched:
            until = this_minute() - timedelta(minutes=later + (2 if number == 1 else 0))
            patched.setattr(evaluate, "closed_until", lambda _, until=until: until)
            evaluate_rollout(rollout.pk)
    row = evaluation(rollout)
    assert RolloutMinute.objects.filter(rollout=rollout).count() == (37 if number == 1 else 39)
    assert replayed_state(rollout) == from_json(formula_of(number).State, row.state)
    assert replayed_figures(rollout, row.verdict) == row.verdict


def test_first_formula__began_with_it__goes_on_to_the_end_by_what_it_reads(log: RequestLog) -> None:
    rollout = of_the_first_formula(automatic(Stage(50, 600, 10_000), Stage(100, 0, 0)))
    log.add(rollout, 5, target=(40, 20), baseline=(40, 0))

    judgement = evaluate_rollout(rollout.pk)

    assert judgement is not None
    assert (judgement.moved, log.left_out) == (Transition.ROLL_BACK, [])
    figures = evaluation(rollout).verdict
    assert figures["formula"] == 1
    assert set(figures["metrics"]) == {"error_rate", "latency_p95", "latency_average", "cost_per_request"}
    assert "evidence_threshold" not in figures["metrics"]["error_rate"]
    assert replayed_figures(rollout, figures) == figures


@pytest.mark.parametrize(("lag", "later"), [(10, 110), (120, 0), (300, 0)])
def test_first_formula__short_lag__late_records_are_waited_for_all_the_same(
    log: RequestLog, settings: Settings, monkeypatch: pytest.MonkeyPatch, lag: int, later: int
) -> None:
    settings.ROLLOUT_EVALUATION_LAG_SECONDS = lag
    rollout, now = of_the_first_formula(automatic()), timezone.now()
    moments: list[datetime] = []

    def closed(moment: datetime) -> datetime:
        moments.append(moment)
        return this_minute()

    monkeypatch.setattr(timezone, "now", lambda: now)
    monkeypatch.setattr(evaluate, "closed_until", closed)
    evaluate_rollout(rollout.pk)
    assert moments == [now - timedelta(seconds=later)]


def test_store_still_inserting__minutes_wait_until_all_rows_of_them_can_be_read(
    log: RequestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = automatic()
    monkeypatch.setattr(evaluate, "visible_until", lambda: this_minute() - timedelta(minutes=4, seconds=-3))
    judgement = evaluate_rollout(rollout.pk)
    assert judgement is not None
    assert judgement.through == this_minute() - timedelta(minutes=4)


def test_unknown_formula__not_judged_by_another(log: RequestLog, caplog: pytest.LogCaptureFixture) -> None:
    rollout = automatic()
    RolloutEvaluation.objects.filter(rollout=rollout).update(verdict={"formula": 99})
    assert evaluate_running_rollouts() == []
    assert "no formula has the number 99" in caplog.text


def test_never_evaluated__replay__refused() -> None:
    with pytest.raises(ValueError, match="never evaluated"):
        replayed_state(make_rollout())


def test_long_absence__caught_up_by_days__decides_only_at_the_end(log: RequestLog) -> None:
    rollout = automatic(Stage(10, 0, 0), Stage(100, 0, 0), minutes_ago=60 * 24 * 2 + 30)
    looks = [evaluate_rollout(rollout.pk) for _ in range(4)]
    assert [look and look.moved for look in looks] == [None, None, Transition.PROMOTE, None]
    assert looks[3] is None


@pytest.mark.parametrize(
    ("lag", "now", "closed"),
    [
        (120, "13:37:00", "13:35:00"),
        (120, "13:37:59", "13:35:00"),
        (0, "13:37:11", "13:37:00"),
        (5, "13:37:04", "13:36:00"),
    ],
)
def test_closed_until__lag__whole_minutes_before_it(settings: Settings, lag: int, now: str, closed: str) -> None:
    settings.ROLLOUT_EVALUATION_LAG_SECONDS = lag
    day = "2026-11-21T"
    assert closed_until(datetime.fromisoformat(f"{day}{now}+00:00")) == datetime.fromisoformat(f"{day}{closed}+00:00")
