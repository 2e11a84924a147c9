from __future__ import annotations

import re
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from analytics.models import EvaluationTask, Evaluator
from console.rollouts.scores import counted
from core.ui.formats import MINUS
from gateway.evaluations.services import change_online_evaluation
from rollouts.comparison import quality
from rollouts.comparison.metrics import latest_figures
from rollouts.evaluation.terms import Action
from rollouts.models import Rollout, RolloutEvaluation
from rollouts.quality.entries import QualityEntry
from rollouts.services import pause_rollout
from rollouts.states import TEST_STAGES
from tests.console.rollouts.test_rollout import shown, signed_in
from tests.console.rollouts.test_rollout import totals as totals
from tests.factories.evaluators import make_evaluator
from tests.factories.prompts import make_config
from tests.factories.rollouts import make_rollout
from tests.rollouts.quality.tasks import matched, sampled
from tests.rollouts.quality.test_judges import CRITERION
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("totals")]


@tabled
def test_counted(due: int, done: int, missing: dict[str, int], text: str) -> None:
    tasks = {"due": due, "done": done, "missing": sum(missing.values()), "missing_by_reason": missing}
    assert counted(tasks) == text


def test_counted__reasons__in_the_words_of_online_evaluations() -> None:
    tasks = {"due": 2, "done": 0, "missing": 2, "missing_by_reason": {"unknown_cost": 1, "masked": 1}}
    assert counted(tasks) == "0 of 2 due judged, 2 missing: masked by a guardrail 1, highest cost not known 1"


def judged(*, started: bool = True, **fields: Any) -> tuple[Rollout, Evaluator]:
    config = make_config(versions=2)
    evaluator = make_evaluator(config.project, name="<b>Accurate</b>")
    matched(config.project, evaluator)
    entry = QualityEntry(evaluator.pk, **fields)
    return make_rollout(config, started=started, quality=[entry]), evaluator


def panel_of(client: Client, rollout: Rollout) -> str:
    page = shown(client, rollout)
    found = re.search(r'id="panel-scores".*?</section>', page, re.DOTALL)
    assert found, page
    return unescape(found[0])


def test_panel__no_evaluator__is_none(client: Client) -> None:
    rollout = make_rollout()
    assert 'id="panel-scores"' not in shown(signed_in(client, rollout), rollout)


def test_panel__before_the_start__says_how_many_will_judge(client: Client) -> None:
    rollout, _ = judged(started=False)
    assert "1 evaluator will judge answers once the rollout begins." in panel_of(signed_in(client, rollout), rollout)


def test_panel__tasks__what_became_of_them_and_the_worst_pairs(client: Client) -> None:
    rollout, evaluator = judged()
    evaluation = evaluator.online_evaluations.get()
    rows = sampled(rollout, evaluation, 5, target=[0.0, None], baseline=[1.0, 1.0])
    for place, row in enumerate(rows):
        EvaluationTask.objects.filter(pk=row.pk).update(position=place)

    text = panel_of(signed_in(client, rollout), rollout)

    assert "1 of 2 due judged, 1 missing: no text 1" in text
    assert "2 of 2 due judged" in text
    assert "a rule, which is right by definition" in text
    assert f"{MINUS}100.00 points" in text
    for row in (rows[0], rows[2]):
        assert f"/admin/analytics/requests/{rollout.project_id}/{row.request_id}/" in text
    assert f"/admin/evaluators/{evaluator.pk}/" in text
    assert "<b>Accurate</b>@1" not in shown(client, rollout)


def test_panel__labelled_judge__says_that_people_correct_it_and_what_it_waits_for(client: Client) -> None:
    config = make_config(versions=2)
    evaluator = make_evaluator(config.project, "judge", criteria=[CRITERION], model="openai/gpt-4o")
    evaluation = matched(config.project, evaluator, monthly_budget_usd=Decimal(10), label_share=0.2)
    rollout = make_rollout(config, started=True, quality=[QualityEntry(evaluator.pk, action=Action.ROLL_BACK)])
    sampled(rollout, evaluation, 5, target=[0.0], baseline=[1.0], label_due=True, label_share=0.2)

    text = panel_of(signed_in(client, rollout), rollout)

    assert "a judge, corrected by labels of people for 20 % of what is due" in text
    assert "it can hold the rollout, and not pass" not in text
    assert "It waits for 2 labels that people have to give." in text
    assert "<dt>Labels waited for</dt><dd>2</dd>" in text


def test_verdict__waits_for_labels__says_how_many_and_links_them(client: Client) -> None:
    config = make_config(versions=2)
    evaluator = make_evaluator(config.project, "judge", name="polite", criteria=[CRITERION], model="openai/gpt-4o")
    evaluation = matched(config.project, evaluator, monthly_budget_usd=Decimal(10), label_share=0.2)
    rollout = make_rollout(config, started=True, quality=[QualityEntry(evaluator.pk, required=True)])
    sampled(rollout, evaluation, 5, target=[0.0], baseline=[1.0], label_due=True, label_share=0.2)
    figures = {**latest_figures(rollout), "reason": "quality_inconclusive", "explanation": "Label them, or promote."}
    RolloutEvaluation.objects.filter(rollout=rollout).update(verdict=figures, decided_at=timezone.now())

    text = shown(signed_in(client, rollout), rollout)

    assert "Label them, or promote. 2 answers wait for a label." in text
    assert re.search(r'href="[^"]*evaluator_id=[^"]*count=2[^"]*">Label 2 of 2 answers for polite@1</a>', text)

    change_online_evaluation(
        project_id=config.project_id, evaluation_id=evaluation.pk, values={"state": "paused"}, actor="test"
    )
    text = shown(signed_in(client, rollout), rollout)
    assert "by polite@1, for which no more answers are due. It will not pass by waiting" in text

    pause_rollout(project_id=config.project_id, rollout_id=rollout.pk, actor="test")
    assert "Label them, or promote.</p>" in shown(signed_in(client, rollout), rollout)


def test_panel__ratings_of_users__are_no_rule(client: Client) -> None:
    config = make_config(versions=2)
    evaluator = make_evaluator(config.project, "user_feedback")
    matched(config.project, evaluator)
    rollout = make_rollout(config, started=True, quality=[QualityEntry(evaluator.pk)])

    text = panel_of(signed_in(client, rollout), rollout)

    assert "the ratings of users, as they are" in text
    assert "a rule, which is right by definition" not in text


def test_ab_test__its_page__begins_with_the_verdict_and_counts_what_is_missing(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(versions=2)
    goal = QualityEntry(score_name="resolved", goal=True)
    rollout = make_rollout(config, started=True, quality=[goal], stages=TEST_STAGES)
    monkeypatch.setattr(quality, "units_by_arm", lambda *_: {"target": 7, "baseline": 8})

    text = panel_of(signed_in(client, rollout), rollout)

    assert "0 of 7 requests have one, 7 none yet" in text
    assert "an outcome that your application sends, the goal of this A/B test" in text
    assert "E that it is not better by +10.00 points" in text
    page = shown(client, rollout)
    assert "A/B test; people decide" in page or "A/B test; decides by itself" in page
    verdict = page.partition('id="panel-verdict"')[2]
    first = re.sub(r"<[^>]*>", " ", verdict.partition("<p")[2].partition("</p>")[0].partition(">")[2]).strip()
    assert first == "resolved is undecided: no outcomes to compare yet."
