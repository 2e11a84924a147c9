"""Answers that online evaluations have due are judged once, and every end is counted."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.utils import timezone

from analytics.clickhouse import client
from analytics.deletion.services import delete_request
from analytics.models import EvaluationBudget, EvaluationTask, OnlineEvaluation
from analytics.models.online_evaluations import TaskState
from analytics.online_evaluations import money, queue
from analytics.queries.variants.by_record import Recorded, recorded_minutes
from analytics.request_log.sources import NOT_OF_USERS
from analytics.scores.sync.run import copy_due
from gateway.evaluations.online import judge_due
from gateway.guardrails.verdicts import VERDICTS
from gateway.retention import expire_judgements
from integrations.models import ModelPrice, ProviderIntegration
from integrations.pricing.services import load_shipped_prices
from tests.factories.analytics import make_entry, store
from tests.factories.settings import make_settings
from tests.fakes.scripted import completion, status
from tests.gateway.evaluations.conftest import Scene
from tests.gateway.evaluations.online import (
    JUDGE,
    PATH,
    POLITE,
    change,
    create,
    detail,
    ends,
    graded,
    judge,
    judge_all,
    priced,
    rule,
    scores,
    spent,
    take_samples,
    without_waits,
)
from tests.gateway.spooled import spooled_entries

pytestmark = pytest.mark.django_db(transaction=True)

ROLLOUT, CONFIG = uuid4(), uuid4()
# A thousand tokens of the prompt at 2.5 dollars for a million of them.
DEAR = {"prompt_tokens": 1000, "completion_tokens": 0, "total_tokens": 1000}
COPY = """
SELECT score_name, score_value, prompt_config_id, prompt_version, rollout_id, toString(variant) FROM scores FINAL
WHERE project_id = {project:UUID} AND request_id = {request:String}
"""


def of_rollout(scene: Scene, variant: str, **values: Any) -> str:
    """Stores a request that a rollout counts in one of its arms; returns its id."""
    body = {"prompt_config": "support-bot", "messages": [{"role": "user", "content": "When does it leave?"}]}
    entry = make_entry(
        json.dumps(body).encode(),
        json.dumps(completion("At seven.")).encode(),
        **{
            "project_id": str(scene.project.pk),
            "rollout_id": str(ROLLOUT),
            "rollout_stage": 2,
            "variant": variant,
            "alloc_unit": 2**63 + 5,
            "prompt_config_id": str(CONFIG),
            "prompt_version": 1 + (variant == "target"),
            **values,
        },
    )
    store(scene.spool, entry)
    return str(entry.record.request_id)


def masked(scene: Scene) -> str:
    verdict = [{"guardrail": "pii", "stage": "output", "action": "masked", "detail": "email"}]
    return of_rollout(scene, "target", attributes={VERDICTS: json.dumps(verdict)})


@pytest.mark.parametrize("scene", [[graded("yes"), graded("no")]], indirect=True)
def test_judge__scores_every_answer_once_and_says_what_it_cost(scene: Scene) -> None:
    evaluation_id = judge(scene)
    request_ids = sorted([scene.answered(), scene.answered()])

    take_samples()
    due = detail(scene, evaluation_id)
    judge_all()
    take_samples()
    judge_all()

    assert (due["tasks"]["due"], due["tasks"]["sampled"], due["last_hour"]["due"]) == (2, 2, 2)
    assert due["oldest_due_at"] is not None
    found = scores("judge@1")
    assert [one[0] for one in found] == request_ids
    assert sorted(one[1] for one in found) == [0, 1]
    assert {one[2] for one in found} == {"llm_judge"}
    after = detail(scene, evaluation_id)
    assert (after["tasks"]["done"], after["tasks"]["due"], after["tasks"]["missing"]) == (2, 0, 0)
    assert (after["last_hour"]["done"], after["oldest_due_at"], after["reserved_usd"]) == (2, None, 0)
    # 11 tokens of the prompt and 7 of the answer each.
    assert after["spent_usd"] == 2 * (11 * 2.5 + 7 * 10) / 1_000_000
    assert len(scene.script.received) == 2


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_judge__learns_nothing_of_version_and_arm_and_is_in_the_log(scene: Scene) -> None:
    judge(scene)
    request_id = of_rollout(scene, "target", user_id="u-9f3", session_id="s-7c1")
    rows = Recorded(
        scene.project.pk,
        ROLLOUT,
        datetime(2026, 1, 1, tzinfo=UTC),
        timezone.now() - timedelta(hours=1),
        timezone.now() + timedelta(hours=1),
    )
    before = recorded_minutes(rows, counted=(), log_ratio=0.1)

    take_samples()
    judge_all()

    sent = scene.script.received[0].body.decode()
    assert not [word for word in ("support-bot", "target", "u-9f3", "s-7c1", str(ROLLOUT), str(CONFIG)) if word in sent]
    records = [entry.record for entry in spooled_entries(settings.SPOOL_DIR)]
    (record,) = [one for one in records if one.attributes.get("judged_request_id") == request_id]
    assert (record.source, record.rollout_id, record.variant) == ("judge", "", "")
    store(scene.spool, make_entry(**{name: getattr(record, name) for name in record.__struct_fields__}))
    assert recorded_minutes(rows, counted=(), log_ratio=0.1) == before
    take_samples()
    assert EvaluationTask.objects.count() == 1


def test_score__has_the_copies_of_version_rollout_and_variant(scene: Scene) -> None:
    rule(scene)
    request_id = of_rollout(scene, "target")

    take_samples()
    judge_all()
    copy_due()

    found = client.execute(COPY, {"project": scene.project.pk, "request": request_id})
    assert found == [("contains@1", 1.0, CONFIG, 2, ROLLOUT, "target")]
    task = EvaluationTask.objects.get()
    assert (task.rollout_id, task.rollout_stage, task.variant, task.prompt_version) == (ROLLOUT, 2, "target", 2)


def test_matched__takes_as_many_of_both_arms_and_nothing_else(scene: Scene) -> None:
    evaluation_id = rule(scene, matched=True)
    of_rollout(scene, "target")
    for _ in range(5):
        of_rollout(scene, "baseline")
    of_rollout(scene, "target", alloc_unit=0)
    of_rollout(scene, "target", outcome="error", status_code=500, error_code="provider_error")
    scene.answered()

    take_samples()

    tasks = EvaluationTask.objects.filter(evaluation=UUID(evaluation_id))
    assert sorted(tasks.values_list("variant", flat=True)) == ["baseline", "target"]


def test_filter_and_source__leave_out_what_no_client_asked(scene: Scene) -> None:
    evaluation_id = rule(scene, filter={"user_id": "ann"})
    wanted = of_rollout(scene, "target", user_id="ann")
    of_rollout(scene, "target", user_id="bob")
    for source in NOT_OF_USERS:
        of_rollout(scene, "target", user_id="ann", source=source)

    take_samples()

    tasks = EvaluationTask.objects.filter(evaluation=UUID(evaluation_id))
    assert [str(one) for one in tasks.values_list("request_id", flat=True)] == [wanted]


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_answers_of_batches__beside_those_of_clients__are_in_no_sample(scene: Scene) -> None:
    evaluation_id = judge(scene)
    scene.answered()
    for number in range(3):
        answer = json.dumps(completion(f"At {number}.")).encode()
        store(scene.spool, make_entry(b"", answer, project_id=str(scene.project.pk), source="batch"))

    take_samples()
    judge_all()

    tasks = detail(scene, evaluation_id)["tasks"]
    assert (tasks["sampled"], tasks["done"], tasks["missing"]) == (1, 1, 0)


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_no_text_leaves__where_texts_are_not_kept_or_masked(scene: Scene) -> None:
    of_judge = judge(scene)
    of_rule = rule(scene)
    masked(scene)
    make = make_entry(project_id=str(scene.project.pk))
    store(scene.spool, make)

    take_samples()
    judge_all()

    assert sorted(ends(of_judge)) == [("skipped", "masked"), ("skipped", "no_text")]
    # A rule sends nothing anywhere.
    assert sorted(ends(of_rule)) == [("done", ""), ("skipped", "no_text")]
    make_settings(scene.project, log_content=False)
    scene.answered()
    take_samples()
    judge_all()
    assert sorted(ends(of_judge)) == [("skipped", "masked"), ("skipped", "no_text"), ("skipped", "no_text")]
    assert scene.script.received == []


def test_skipped__too_old_paused_deleted_or_archived(scene: Scene) -> None:
    old, paused, deleted, archived = (rule_named(scene, name) for name in ("old", "paused", "deleted", "archived"))
    scene.answered()
    take_samples()
    EvaluationTask.objects.filter(evaluation=UUID(old)).update(due_at=timezone.now() - timedelta(minutes=16))
    change(scene, paused, state="paused")
    assert scene.api.delete(f"/api/llm/online-evaluations/{deleted}").status_code == 204
    evaluator_id = OnlineEvaluation.objects.get(pk=archived).evaluator_id
    assert (
        scene.api.patch(f"/api/llm/evaluators/{evaluator_id}", {"state": "archived"}, format="json").status_code == 200
    )

    judge_all()

    assert ends(old) == [("skipped", "too_old")]
    assert ends(paused) == ends(deleted) == ends(archived) == [("skipped", "disabled")]
    assert detail(scene, old)["tasks"]["skipped_by_reason"]["too_old"] == 1
    scene.answered()
    take_samples()
    assert [len(ends(one)) for one in (old, paused, deleted, archived)] == [2, 1, 1, 1]


def rule_named(scene: Scene, name: str) -> str:
    made = scene.api.post(
        "/api/llm/evaluators", {"name": name, "kind": "contains", "definition": {"value": "seven"}}, format="json"
    )
    return create(scene, made.json()["id"])


def test_rubric_edited__later_answers_are_scored_by_the_next_version(scene: Scene) -> None:
    evaluation_id = rule(scene)
    evaluator_id = OnlineEvaluation.objects.get(pk=evaluation_id).evaluator_id
    first = scene.answered()
    take_samples()
    edited = scene.api.post(
        f"/api/llm/evaluators/{evaluator_id}/versions", {"definition": {"value": "eight"}}, format="json"
    )
    assert edited.status_code == 201
    second = scene.answered()
    take_samples()
    judge_all()

    assert (scores("contains@1"), scores("contains@2")) == ([(first, 1, "code")], [(second, 0, "code")])


@pytest.mark.parametrize("scene", [[status(500), status(500), status(500), graded()]], indirect=True)
def test_judge__that_keeps_failing__fails_after_three_tries(scene: Scene) -> None:
    evaluation_id = judge(scene)
    scene.answered()
    take_samples()

    for _ in range(5):
        judge_all()
        without_waits()

    assert ends(evaluation_id) == [("failed", "judge_failed")]
    assert detail(scene, evaluation_id)["tasks"]["failed_by_reason"] == {"judge_failed": 1}
    assert len(scene.script.received) == queue.MAX_TRIES


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_rate_limit__lets_judging_wait_for_clients(scene: Scene) -> None:
    evaluation_id = judge(scene)
    make_settings(scene.project, rate_limit_enabled=True, rate_limit_rpm=2)
    for _ in range(3):
        scene.answered()
    take_samples()

    judge_all()

    counts = detail(scene, evaluation_id)["tasks"]
    assert (counts["done"], counts["due"], counts["missing"]) == (1, 2, 0)
    assert {task.tries for task in EvaluationTask.objects.filter(state="due")} == {0}


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_judge__without_a_known_price__is_refused(scene: Scene) -> None:
    evaluator_id = scene.evaluator("judge", criteria=[POLITE], model="openai/judge-of-no-price")
    given = {"evaluator_id": evaluator_id, "rate": 1, "monthly_budget_usd": 1}

    answered = scene.api.post(PATH, given, format="json")

    error = answered.json()["error"]
    assert (answered.status_code, list(error["details"])) == (400, ["evaluator_id"])
    assert "What a request to openai/judge-of-no-price costs at most cannot be said" in error["message"]
    assert not OnlineEvaluation.objects.exists()


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
@pytest.mark.parametrize("provider", ["vllm", "sandbox"])
def test_judge__own_model__is_asked_within_its_budget(scene: Scene, provider: str) -> None:
    ProviderIntegration.objects.update(provider=provider)
    model = f"{provider}/my-judge"
    price = {"input_cost_per_1m": "1", "output_cost_per_1m": "2"}
    assert scene.api.put(f"/api/llm/pricing/{model}", price, format="json").status_code in (200, 201)
    evaluation_id = create(
        scene, scene.evaluator("judge", criteria=[POLITE], model=model, max_tokens=300), monthly_budget_usd=1
    )
    scene.answered()
    take_samples()

    judge_all()

    assert ends(evaluation_id) == [("done", "")]
    assert json.loads(scene.script.received[0].body)["max_completion_tokens"] == 300


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_judge__of_the_sandbox_alone__needs_no_price_of_ones_own(scene: Scene) -> None:
    ProviderIntegration.objects.update(provider="sandbox")
    load_shipped_prices()
    evaluation_id = create(
        scene, scene.evaluator("judge", criteria=[POLITE], model="sandbox/judge"), monthly_budget_usd=20
    )
    scene.answered()
    take_samples()

    judge_all()

    assert ends(evaluation_id) == [("done", "")]


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_judge__own_model_without_a_price__says_where_it_is_set(scene: Scene) -> None:
    ProviderIntegration.objects.update(provider="vllm")
    evaluator_id = scene.evaluator("judge", criteria=[POLITE], model="vllm/my-judge")
    given = {"evaluator_id": evaluator_id, "rate": 1, "monthly_budget_usd": 1}

    error = scene.api.post(PATH, given, format="json").json()["error"]

    assert "the price of vllm/my-judge is not known: set it by `PUT pricing/vllm/my-judge`" in error["message"]


@pytest.mark.parametrize(
    "scene", [[graded(usage={**DEAR, "completion_tokens": 1000, "total_tokens": 2000})]], indirect=True
)
def test_budget__that_ends__was_used_to_95_percent(scene: Scene) -> None:
    priced(input_cost_per_1m="0.4", output_cost_per_1m="1.6")
    evaluator_id = scene.evaluator("judge", criteria=[POLITE], model=JUDGE)
    create(scene, evaluator_id, monthly_budget_usd=0.06)
    for _ in range(35):
        scene.answered()
    take_samples()

    while EvaluationTask.objects.filter(state="due").exists():
        judge_all()
        without_waits()

    budget = EvaluationBudget.objects.get()
    assert Decimal("0.95") * budget.budget_usd <= budget.spent_usd <= budget.budget_usd


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_judge__that_has_no_name__is_refused(scene: Scene) -> None:
    evaluator_id = scene.evaluator("judge", criteria=[POLITE])
    given = {"evaluator_id": evaluator_id, "rate": 1, "monthly_budget_usd": 1}

    answered = scene.api.post(PATH, given, format="json")

    assert answered.status_code == 400
    assert "It names no model" in answered.json()["error"]["details"]["evaluator_id"][0]


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_judge__whose_price_is_gone__is_not_asked(scene: Scene) -> None:
    evaluation_id = judge(scene)
    ModelPrice.objects.all().delete()
    scene.answered()
    take_samples()

    judge_all()

    assert ends(evaluation_id) == [("failed", "unknown_cost")]
    assert scene.script.received == []


@pytest.mark.parametrize("scene", [[graded(usage=DEAR)]], indirect=True)
def test_budget__spent_in_the_middle__skips_the_rest_and_more_money_goes_on(scene: Scene) -> None:
    evaluation_id = judge(scene, monthly_budget_usd=0.02)
    ModelPrice.objects.update(output_cost_per_1m=0)
    for _ in range(12):
        scene.answered()
    take_samples()

    while EvaluationTask.objects.filter(state="due").exists():
        judge_all()
        without_waits()

    budget = EvaluationBudget.objects.get()
    done = EvaluationTask.objects.filter(state="done").count()
    assert budget.spent_usd == spent(evaluation_id) == Decimal("0.0025") * done
    assert budget.spent_usd <= budget.budget_usd
    assert budget.reserved_usd == 0
    counts = detail(scene, evaluation_id)["tasks"]
    assert 0 < done < 9
    assert counts["skipped_by_reason"]["budget"] == 12 - done
    assert detail(scene, evaluation_id)["is_spent_out"]
    scene.answered()
    take_samples()
    judge_all()
    assert detail(scene, evaluation_id)["tasks"]["done"] == done

    assert not change(scene, evaluation_id, monthly_budget_usd=10)["is_spent_out"]
    scene.answered()
    take_samples()
    judge_all()
    assert detail(scene, evaluation_id)["tasks"]["done"] == done + 1


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_budget__that_another_worker_holds__all_of_it_waits_and_is_not_taken_again_and_again(scene: Scene) -> None:
    evaluation_id = judge(scene, monthly_budget_usd=1)
    for _ in range(6):
        scene.answered()
    take_samples()
    held = queue.claim_batch(timezone.now(), 1)
    assert held is not None
    (task,) = held.tasks
    assert money.reserve(task, Decimal(1), timezone.now()) is money.Room.RESERVED

    goes_on = judge_due()

    left = EvaluationTask.objects.filter(state=TaskState.DUE, claim=None)
    assert (goes_on, left.count(), left.filter(not_before__gt=timezone.now()).count()) == (False, 5, 5)
    assert set(left.values_list("tries", flat=True)) == {0}
    assert scene.script.received == []
    task.refresh_from_db()
    queue.finish([queue.End(task, TaskState.DONE, score=1.0, cost=Decimal("0.5"))], timezone.now())
    without_waits()
    judge_all()
    assert ends(evaluation_id) == [("done", "")] * 6


@pytest.mark.parametrize("scene", [[graded(usage=DEAR)]], indirect=True)
def test_budget__with_room_for_few_requests_at_a_time__is_used_without_a_wait(scene: Scene) -> None:
    # A request reserves less than half a cent, and costs a quarter.
    evaluation_id = judge(scene, monthly_budget_usd=0.045)
    ModelPrice.objects.update(output_cost_per_1m=0)
    for _ in range(16):
        scene.answered()
    take_samples()

    judge_all()

    assert ends(evaluation_id) == [("done", "")] * 16


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_two_evaluations_of_one_evaluator__ask_the_judge_once(scene: Scene) -> None:
    first = judge(scene)
    second = create(scene, str(OnlineEvaluation.objects.get(pk=first).evaluator_id), monthly_budget_usd=1, rate=1)
    scene.answered()
    take_samples()

    for _ in range(3):
        judge_all()
        without_waits()

    assert ends(first) == ends(second) == [("done", "")]
    assert len(scene.script.received) == len(scores("judge@1")) == 1


def test_deleted_request__loses_its_score_and_is_not_judged_and_its_task_names_it_no_more(scene: Scene) -> None:
    evaluation_id = rule(scene)
    scored, waiting = scene.answered(), scene.answered()
    take_samples()
    EvaluationTask.objects.filter(request_id=waiting).update(not_before=timezone.now() + timedelta(hours=1))
    judge_all()

    for request_id in (scored, waiting):
        delete_request(scene.project.pk, UUID(request_id), actor="user:ann")
    without_waits()
    judge_all()

    assert scores("contains@1") == []
    assert sorted(ends(evaluation_id)) == [("done", ""), ("skipped", "no_text")]
    assert not EvaluationTask.objects.filter(request_id__in=[scored, waiting]).exists()


def test_claim_that_ran_out__stores_nothing_and_another_worker_goes_on(scene: Scene) -> None:
    evaluation_id = rule(scene)
    scene.answered()
    take_samples()
    now = timezone.now()
    lost = queue.claim_batch(now, 10)
    assert lost is not None
    assert queue.claim_batch(now, 10) is None
    queue.tidy(now + queue.CLAIM + timedelta(seconds=1))

    queue.finish([queue.End(task, TaskState.DONE, score=0.0) for task in lost.tasks], now)
    judge_all()

    assert ends(evaluation_id) == [("done", "")]
    assert [value for _, value, _ in scores("contains@1")] == [1]


def test_retention__deletes_tasks_with_their_requests(scene: Scene) -> None:
    rule(scene)
    scene.answered()
    take_samples()
    judge_all()

    expire_judgements(timezone.now() + timedelta(days=500))

    assert EvaluationTask.objects.count() == 0
