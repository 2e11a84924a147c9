from __future__ import annotations

import logging
from datetime import datetime, timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from analytics.queries.variants import UsualValues
from rollouts import evaluate, minutes, recorded
from rollouts.evaluate import closed_until, evaluate_rollout, evaluate_running_rollouts
from rollouts.evaluation import formula_1, formula_of, from_json, to_json
from rollouts.models import Mode, Rollout, RolloutEvaluation, RolloutMinute, RolloutTransition
from rollouts.replay import replayed_figures, replayed_state
from rollouts.services import pause_rollout, promote_rollout, start_rollout
from rollouts.states import Stage, Transition
from rollouts.tasks import evaluate_rollouts
from tests.factories.rollouts import make_rollout
from tests.rollouts.request_log import RequestLog, begun, this_minute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rollouts")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> RequestLog:
    log = RequestLog()
    log.take_the_place(monkeypatch)
    return log


def automatic(*stages: Stage, minutes_ago: int = 10, **fields: Any) -> Rollout:
    if stages:
        fields["stages"] = stages
    return begun(make_rollout(started=True, mode=Mode.AUTO, **fields), minutes_ago)


def evaluation(rollout: Rollout) -> RolloutEvaluation:
    return RolloutEvaluation.objects.get(rollout=rollout)


def of_the_first_formula(rollout: Rollout) -> Rollout:
    """Returns the rollout as if the first formula had evaluated it once."""
    state = to_json(formula_1.initial_state(formula_1.Policy(), latency={}, cost={}))
    RolloutEvaluation.objects.filter(rollout=rollout).update(initial=state, state=state, verdict={"formula": 1})
    rollout.refresh_from_db()
    return rollout


def test_failing_target__one_look__rolled_back_with_reason_and_figures(log: RequestLog) -> None:
    rollout = automatic(Stage(50, 600, 10_000), Stage(100, 0, 0))
    log.add(rollout, 5, target=(40, 20), baseline=(40, 0))

    judgement = evaluate_rollout(rollout.pk)

    assert judgement is not None
    assert judgement.moved is Transition.ROLL_BACK
    rollout.refresh_from_db()
    assert (rollout.status, rollout.config.has_active_rollout) == ("rolled_back", False)
    move = RolloutTransition.objects.get(rollout=rollout, action="roll_back")
    assert (move.actor, move.from_status, move.to_status) == ("auto", "running", "rolled_back")
    assert "error rate" in move.reason
    assert move.figures == evaluation(rollout).verdict
    assert (move.figures["status"], move.figures["metrics"]["error_rate"]["status"]) == ("failing", "failing")
    assert move.figures["counts"]["target"]["errors"] == 20
    assert replayed_figures(rollout, move.figures) == move.figures


def test_rolled_back_before__judged_again__the_verdict_says_so_and_replays(log: RequestLog) -> None:
    first = automatic(Stage(50, 600, 10_000), Stage(100, 0, 0))
    log.add(first, 5, target=(40, 20), baseline=(40, 0))
    evaluate_rollout(first.pk)
    again = begun(make_rollout(first.config, started=True, mode=Mode.AUTO, stages=[Stage(50, 600, 10_000)]), 10)
    log.add(again, 5, target=(40, 20), baseline=(40, 0))

    evaluate_rollout(again.pk)

    move = RolloutTransition.objects.get(rollout=again, action="roll_back")
    assert "This version was rolled back once before." in move.reason
    assert (move.figures["earlier_rollbacks"], move.figures["explanation"]) == (1, move.reason)
    assert replayed_figures(again, move.figures) == move.figures
    assert "rolled back" not in RolloutTransition.objects.get(rollout=first, action="roll_back").reason


def test_harmless_target__a_stage_a_minute__completed_and_active(
    log: RequestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = automatic(Stage(10, 0, 5), Stage(40, 0, 5), Stage(100, 0, 0))
    for number, expected in enumerate(["running", "running", "completed"], start=1):
        ago = 5 - number
        log.add(rollout, ago + 1, stage=number, target=(10, 0), baseline=(0 if number == 3 else 30, 0))
        monkeypatch.setattr(evaluate, "closed_until", lambda _, ago=ago: this_minute() - timedelta(minutes=ago))
        assert evaluate_rollout(rollout.pk) is not None
        assert evaluate_rollout(rollout.pk) is None
        rollout.refresh_from_db()
        assert rollout.status == expected
    assert rollout.config.active_version_id == rollout.target_version_id
    actions = RolloutTransition.objects.filter(rollout=rollout).values_list("action", "actor")
    assert list(actions)[2:] == [("promote", "auto")] * 3


def test_same_minute__asked_again__no_second_decision(log: RequestLog) -> None:
    rollout = automatic(*[Stage(weight, 0, 0) for weight in (1, 2, 3, 4)])
    log.add(rollout, 3, target=(5, 0), baseline=(50, 0))
    for _ in range(4):
        evaluate_running_rollouts()
    rollout.refresh_from_db()
    assert rollout.current_stage == 2
    assert log.asked == 1


def test_inconclusive_at_half__held__and_promoted_by_a_person(log: RequestLog) -> None:
    rollout = automatic(Stage(50, 0, 5), Stage(100, 0, 0))
    log.add(rollout, 5, target=(10, 0), baseline=(10, 0))
    judgement = evaluate_rollout(rollout.pk)
    assert judgement is not None
    assert (judgement.moved, judgement.verdict.reason) == (None, "inconclusive")
    row = promote_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")
    assert (row.status, row.current_stage) == ("running", 2)
    assert RolloutTransition.objects.get(rollout=rollout, action="promote").figures["status"] == "inconclusive"


@pytest.mark.parametrize(
    ("stage", "minutes_ago", "reason"),
    [(Stage(10, 30, 0), 20, "minimum_duration"), (Stage(10, 15, 20), 20, "minimum_requests")],
)
def test_minima__not_met__waits(log: RequestLog, stage: Stage, minutes_ago: int, reason: str) -> None:
    rollout = automatic(stage, Stage(100, 0, 0), minutes_ago=minutes_ago)
    log.add(rollout, 5, target=(10, 0), baseline=(90, 0))
    judgement = evaluate_rollout(rollout.pk)
    assert judgement is not None
    assert (judgement.moved, judgement.verdict.reason) == (None, reason)


def test_requests_of_the_stage_before__do_not_count(log: RequestLog) -> None:
    rollout = automatic(Stage(10, 0, 0), Stage(20, 0, 5), Stage(100, 0, 0))
    log.add(rollout, 5, target=(10, 0), baseline=(90, 0))
    promote_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")
    judgement = evaluate_rollout(rollout.pk)
    assert judgement is not None
    assert judgement.verdict.reason == "minimum_requests"
    figures = evaluation(rollout).verdict
    assert replayed_figures(rollout, figures) == figures


def test_manual__failing__verdict_stored_and_nothing_moved(log: RequestLog) -> None:
    rollout = begun(make_rollout(started=True, mode=Mode.MANUAL), 10)
    log.add(rollout, 5, target=(40, 30), baseline=(40, 0))
    judgement = evaluate_rollout(rollout.pk)
    assert judgement is not None
    assert (judgement.moved, judgement.verdict.decision) == (None, "roll_back")
    rollout.refresh_from_db()
    assert rollout.status == "running"
    assert evaluation(rollout).verdict["decision"] == "roll_back"


def test_not_running__pending_and_paused__not_evaluated(log: RequestLog) -> None:
    pending, paused = make_rollout(), automatic()
    pause_rollout(project_id=paused.project_id, rollout_id=paused.pk, actor="key:1")
    assert [evaluate_rollout(row.pk) for row in (pending, paused)] == [None, None]
    assert log.asked == 0


def test_pause__in_between__goes_on_where_it_was(log: RequestLog) -> None:
    rollout = automatic(Stage(10, 30, 0), Stage(100, 0, 0), minutes_ago=15)
    # The rollout began with a minute and is paused within one, so it has run for up to a minute more.
    before = pause_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1").stage_seconds / 60
    assert before >= 15
    start_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")
    later = timezone.now() - timedelta(minutes=9)
    Rollout.objects.filter(pk=rollout.pk).update(running_since=later)
    log.add(rollout, 15, target=(10, 0), baseline=(90, 0))
    judgement = evaluate_rollout(rollout.pk)
    assert judgement is not None
    assert judgement.verdict.reason == "minimum_duration"
    assert evaluation(rollout).verdict["elapsed_minutes"] == pytest.approx(before + 9, abs=1)


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
    asked: list[datetime] = []

    def closed(moment: datetime) -> datetime:
        asked.append(moment)
        return this_minute()

    monkeypatch.setattr(timezone, "now", lambda: now)
    monkeypatch.setattr(evaluate, "closed_until", closed)
    evaluate_rollout(rollout.pk)
    assert asked == [now - timedelta(seconds=later)]


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


def test_claim__held_by_another__left_alone_until_it_expires(log: RequestLog) -> None:
    rollout, now, theirs = automatic(), timezone.now(), uuid4()
    rows = RolloutEvaluation.objects.filter(rollout=rollout)
    rows.update(claim=theirs, claimed_until=now + timedelta(minutes=1))
    assert evaluate_rollout(rollout.pk) is None
    assert evaluation(rollout).claim == theirs
    rows.update(claimed_until=now - timedelta(seconds=1))
    assert evaluate_rollout(rollout.pk) is not None
    assert (evaluation(rollout).claim, evaluation(rollout).claimed_until) == (None, None)


def test_claim__lost_while_reading__nothing_saved(log: RequestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout, theirs = automatic(), uuid4()
    log.add(rollout, 5, target=(40, 30), baseline=(40, 0))

    def slow(*args: Any, **options: Any) -> Any:
        RolloutEvaluation.objects.filter(rollout=rollout).update(claim=theirs)
        return log.recorded_minutes(*args, **options)

    monkeypatch.setattr(recorded, "recorded_minutes", slow)
    assert evaluate_rollout(rollout.pk) is None
    assert evaluation(rollout).claim == theirs
    assert not RolloutMinute.objects.exists()


def test_paused_while_reading__minutes_kept_and_nothing_moved(log: RequestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = automatic()
    log.add(rollout, 5, target=(40, 30), baseline=(40, 0))

    def slow(*args: Any, **options: Any) -> Any:
        pause_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")
        return log.recorded_minutes(*args, **options)

    monkeypatch.setattr(recorded, "recorded_minutes", slow)
    judgement = evaluate_rollout(rollout.pk)
    assert judgement is not None
    assert judgement.moved is None
    rollout.refresh_from_db()
    assert rollout.status == "paused"
    assert RolloutMinute.objects.filter(rollout=rollout).count() == 1


def test_analytics_away__held_logged_and_claim_released(log: RequestLog, caplog: pytest.LogCaptureFixture) -> None:
    rollout = automatic()
    log.away = True
    evaluate_rollouts()
    assert f"rollout.evaluation_failed rollout_id={rollout.pk} error=AnalyticsUnavailableError" in caplog.text
    assert evaluation(rollout).claim is None
    log.away = False
    assert len(evaluate_running_rollouts()) == 1


@pytest.mark.parametrize("problem", [AnalyticsLimitError("too much"), KeyError("counts")])
def test_one_cannot_be_evaluated__the_others_are(
    log: RequestLog, monkeypatch: pytest.MonkeyPatch, problem: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = automatic(), automatic()

    def one_fails(rows: Any, **options: Any) -> Any:
        if rows.rollout_id == first.pk:
            raise problem
        return log.recorded_minutes(rows, **options)

    monkeypatch.setattr(recorded, "recorded_minutes", one_fails)
    assert [judgement.rollout_id for judgement in evaluate_running_rollouts()] == [second.pk]
    assert f"rollout.evaluation_failed rollout_id={first.pk}" in caplog.text


def test_analytics_away__many_rollouts__asked_once(log: RequestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        automatic()
    asked = []

    def away(*args: Any, **_: Any) -> Any:
        asked.append(args)
        raise AnalyticsUnavailableError("away")

    monkeypatch.setattr(minutes, "usual_values", away)
    assert evaluate_running_rollouts() == []
    assert len(asked) == 1


def test_overdue__more_than_a_day__logged_once_a_stage(log: RequestLog, caplog: pytest.LogCaptureFixture) -> None:
    rollout = automatic(Stage(50, 0, 5), Stage(100, 0, 0), minutes_ago=60 * 24 + 30)
    for _ in range(3):
        evaluate_rollout(rollout.pk)
        RolloutEvaluation.objects.filter(rollout=rollout).update(through=this_minute() - timedelta(minutes=2))
    assert caplog.text.count("rollout.overdue") == 1
    assert evaluation(rollout).verdict["overdue"] is True


def test_held_by_a_metric__logged_when_it_begins(log: RequestLog, caplog: pytest.LogCaptureFixture) -> None:
    policy = {"error_rate": "hold", "unanswered": "hold"}
    rollout = automatic(Stage(50, 0, 5), Stage(100, 0, 0), policy=policy)
    log.add(rollout, 5, target=(40, 30), baseline=(40, 0))
    evaluate_rollout(rollout.pk)
    RolloutEvaluation.objects.filter(rollout=rollout).update(through=this_minute() - timedelta(minutes=2))
    judgement = evaluate_rollout(rollout.pk)
    assert judgement is not None
    assert (judgement.moved, judgement.verdict.reason) == (None, "metric_failing")
    assert caplog.text.count("rollout.held") == 1


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


def test_beat__every_minute__names_the_task(settings: Settings) -> None:
    entry = settings.CELERY_BEAT_SCHEDULE["evaluate-rollouts"]
    assert (entry["task"], entry["schedule"]) == (evaluate_rollouts.name, 60.0)


class TestCommand:
    def run(self, *arguments: str) -> str:
        out = StringIO()
        call_command("evaluate_rollouts", *arguments, stdout=out)
        return out.getvalue()

    def test_nothing_running__says_so(self) -> None:
        assert "Nothing to evaluate" in self.run()

    def test_dry_run__told_and_nothing_stored(self, log: RequestLog) -> None:
        rollout = automatic()
        log.add(rollout, 5, target=(40, 30), baseline=(40, 0))
        assert "would roll back" in self.run("--dry-run")
        assert (evaluation(rollout).state, RolloutMinute.objects.count()) == (None, 0)
        rollout.refresh_from_db()
        assert rollout.status == "running"

    def test_one_rollout__only_that_one(self, log: RequestLog) -> None:
        rollout, other = automatic(), automatic()
        log.add(rollout, 5, target=(40, 30), baseline=(40, 0))
        assert "failing, roll back." in self.run("--rollout", str(rollout.pk))
        assert evaluation(other).decided_at is None

    def test_unknown__error(self) -> None:
        with pytest.raises(CommandError, match="no rollout"):
            self.run("--rollout", str(uuid4()))

    def test_analytics_away__error(self, log: RequestLog) -> None:
        log.away = True
        with pytest.raises(CommandError, match="away"):
            self.run("--rollout", str(automatic().pk))
