"""The evaluation of rollouts: the decisions, and the transitions that follow from them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from rollouts.evaluation.verdict import Verdict
from rollouts.models import Mode, Rollout, RolloutTransition
from rollouts.services import pause_rollout, promote_rollout, start_rollout
from rollouts.states import Stage, Transition
from rollouts.verdicts import evaluate
from rollouts.verdicts.evaluate import evaluate_rollout, evaluate_running_rollouts
from rollouts.verdicts.figures import verdict_at
from tests.factories.rollouts import make_rollout
from tests.rollouts.automatic import automatic, evaluation
from tests.rollouts.replay import replayed_figures
from tests.rollouts.request_log import RequestLog, begun, this_minute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock", "info_logs")]


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
    assert "Errors: 50.0 % against 0 %." in move.reason
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


def test_same_minute__evaluated_again__no_second_decision(log: RequestLog) -> None:
    rollout = automatic(*[Stage(weight, 0, 0) for weight in (1, 2, 3, 4)])
    log.add(rollout, 3, target=(5, 0), baseline=(50, 0))
    for _ in range(4):
        evaluate_running_rollouts()
    rollout.refresh_from_db()
    assert rollout.current_stage == 2
    assert log.query_count == 1


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


def test_paused_by_a_person_meanwhile__failing__verdict_stored_and_nothing_moved(
    log: RequestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = automatic(Stage(50, 600, 10_000), Stage(100, 0, 0))
    log.add(rollout, 5, target=(40, 20), baseline=(40, 0))

    def late_verdict(*seen: Any, **figures: Any) -> Verdict:
        pause_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")
        return verdict_at(*seen, **figures)

    monkeypatch.setattr(evaluate, "verdict_at", late_verdict)
    judgement = evaluate_rollout(rollout.pk)
    assert judgement is not None
    assert (judgement.moved, judgement.verdict.decision) == (None, "roll_back")
    rollout.refresh_from_db()
    assert (rollout.status, rollout.minutes.count()) == ("paused", 1)


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
    assert log.query_count == 0


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
