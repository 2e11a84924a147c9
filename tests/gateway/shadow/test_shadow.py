"""A rollout with a shadow begins once the target's answers to the baseline's requests are shown not to be worse."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.guardrails.verdicts import VERDICTS
from gateway.models import ExperimentAnswer, ExperimentItem
from gateway.shadow.monitoring import SHADOWS
from tests.factories.settings import make_settings
from tests.gateway.experiments.conftest import run_all
from tests.gateway.shadow.conftest import (
    BETTER,
    EQUAL,
    JUDGE,
    PATH,
    SHORT,
    WARM,
    WORSE,
    ShadowScene,
    follow,
    look_again,
    only_experiment,
)
from tests.tables.cases import tabled


def text_of(answer: ExperimentAnswer) -> str:
    return str((answer.answer or {})["content"])


def refused(shadow: ShadowScene, rollout_id: str) -> str:
    """Returns what the gate says is missing."""
    error = shadow.move(rollout_id, "start", 409)["error"]
    assert error["code"] == "gate_not_passed"
    [missing] = error["details"]["gate"]
    return str(missing)


@pytest.mark.parametrize("scene", [[BETTER]], indirect=True)
def test_shadow__better_target__opens_and_keeps_its_figures(shadow: ShadowScene) -> None:
    made = shadow.create()
    assert refused(shadow, made["id"]).startswith("The shadow has not ended yet: 0 of at most 1000 requests are taken")
    shadow.served_many(20)

    shadow.run()

    gate = shadow.gate(made["id"])
    assert (gate["kind"], gate["state"]) == ("shadow", "passed")
    assert gate["reason"] == "The shadow passed: version 2 is not worse than version 1 by 20 pairs of answers."
    found = gate["shadow"]
    assert (found["state"], found["sampled"], found["taken"], found["skipped"]) == ("completed", 20, 20, {})
    assert (found["pairs"], found["wins"], found["ties"], found["losses"], found["missing"]) == (20, 20, 0, 0, 0)
    assert found["e_not_worse"] >= 20
    assert found["spent_usd"] == pytest.approx(20 * 3 * (11 * 2.5 + 7 * 10) / 1_000_000)
    started = shadow.move(made["id"], "start")
    assert (started["status"], started["gate"]) == ("running", gate)
    assert shadow.rollout(made["id"])["transitions"][1]["figures"]["gate"]["shadow"] == found


@pytest.mark.parametrize("scene", [[EQUAL]], indirect=True)
def test_shadow__equal_target__opens_after_more_pairs(shadow: ShadowScene) -> None:
    made = shadow.create()
    for _ in range(3):
        shadow.served_many(30)
        look_again()
        shadow.run()

    found = shadow.gate(made["id"])
    assert found["state"] == "passed", found
    assert (found["shadow"]["wins"], found["shadow"]["losses"]) == (0, 0)
    assert 20 < found["shadow"]["ties"] <= 90
    shadow.move(made["id"], "start")


@pytest.mark.parametrize("scene", [[WORSE]], indirect=True)
def test_shadow__worse_target__stays_closed_but_for_an_override(shadow: ShadowScene) -> None:
    made = shadow.create()
    shadow.served_many(20)

    shadow.run()

    missing = "The shadow found version 2 worse than version 1 by 20 pairs of answers."
    assert refused(shadow, made["id"]) == missing
    assert shadow.gate(made["id"])["shadow"]["e_worse"] >= 100
    shadow.move(made["id"], "start", 400, override_gate=True)
    gate = shadow.move(made["id"], "start", override_gate=True, reason="The tone is wanted.")["gate"]
    assert (gate["state"], gate["reason"], gate["shadow"]["losses"]) == ("overridden", "The tone is wanted.", 20)


@pytest.mark.parametrize("scene", [[BETTER]], indirect=True)
def test_shadow__asks_as_the_client_did_with_the_other_prompt_and_only_the_target(shadow: ShadowScene) -> None:
    shadow.create()
    request_id = shadow.served("Where is it?", fields={"temperature": 0.5, "stream": True, "user": "ann", "n": 1})

    shadow.run()

    [sent] = shadow.sent_answers()
    assert [one["content"] for one in sent["messages"]] == [WARM, "Where is it?"]
    assert (sent["temperature"], sent.get("user"), sent.get("stream")) == (0.5, None, None)
    assert len(shadow.scene.of_kind("comparison")) == 2
    baseline, target = ExperimentAnswer.objects.order_by("candidate")
    assert (baseline.request_id, baseline.reused, text_of(baseline)) == (request_id, True, "Tomorrow.")
    assert (target.reused, text_of(target), target.prompt_version) == (False, "Tomorrow, warm regards.", 2)
    assert SHORT not in str(shadow.scene.sent())


@pytest.mark.parametrize("scene", [[BETTER]], indirect=True)
def test_shadow__only_requests_of_the_baseline_that_clients_made_since__are_taken(shadow: ShadowScene) -> None:
    shadow.create()
    taken = shadow.served()
    for values in (
        {"prompt_version": 2},
        {"prompt_config_id": str(shadow.scene.project_id)},
        {"source": "playground"},
        {"source": "experiment"},
        {"source": "shadow"},
        {"outcome": "error"},
        {"operation": "messages"},
    ):
        shadow.served(**values)

    shadow.run()
    look_again()
    shadow.run()

    assert [str(one) for one in ExperimentItem.objects.values_list("request_id", flat=True)] == [taken]
    assert len(shadow.sent_answers()) == 1


@pytest.mark.parametrize("scene", [[BETTER]], indirect=True)
def test_shadow__rate__is_the_share_by_hash(shadow: ShadowScene) -> None:
    made = shadow.create(shadow={"rate": 0.5})
    shadow.served_many(30)

    follow()

    found = shadow.gate(made["id"])["shadow"]
    assert found["rate"] == 0.5
    assert 0 < found["taken"] < 30
    assert found["sampled"] == found["taken"] == ExperimentItem.objects.count()
    metrics = {metric.name: metric.samples for metric in SHADOWS.metrics(SHADOWS.ask())}
    [sample] = metrics["prompt_gateway_shadow_requests"]
    assert (sample.labels["rollout"], sample.labels["result"], sample.value) == (made["id"], "taken", found["taken"])
    [spent] = metrics["prompt_gateway_shadow_spent_usd"]
    assert spent.value == 0


@pytest.mark.parametrize("scene", [[BETTER]], indirect=True)
def test_shadow__more_than_it_can_answer__leaves_the_rest_out(shadow: ShadowScene) -> None:
    made = shadow.create()
    shadow.served_many(45)

    follow()

    found = shadow.gate(made["id"])["shadow"]
    assert (found["taken"], found["skipped"]) == (40, {"backlog": 5})
    run_all()
    assert len(shadow.sent_answers()) <= 40


@tabled
@pytest.mark.parametrize("scene", [[BETTER]], indirect=True)
def test_shadow__what_may_not_or_cannot_be_asked_again__is_counted_and_never_sent(
    shadow: ShadowScene, fields: dict[str, Any], values: dict[str, Any], reason: str
) -> None:
    made = shadow.create()
    shadow.served(fields=fields, **values)

    shadow.run()

    gate = shadow.gate(made["id"])
    found = gate["shadow"]
    assert (found["sampled"], found["taken"], found["skipped"]) == (1, 0, {reason: 1})
    assert "Of 1 sampled requests 1 are left out: " in gate["reason"]
    assert shadow.scene.sent() == []


@pytest.mark.parametrize("scene", [[BETTER]], indirect=True)
def test_shadow__masked_or_without_texts__is_never_sent(shadow: ShadowScene) -> None:
    made = shadow.create()
    masked = '[{"guardrail": "pii", "stage": "input", "action": "masked", "detail": "email"}]'
    shadow.served(attributes={VERDICTS: masked})
    shadow.run()
    make_settings(shadow.scene.project, log_content=False)
    shadow.served()
    look_again()
    shadow.run()

    # The first one is looked at again, and then what is masked in it is not even read.
    skipped = shadow.gate(made["id"])["shadow"]["skipped"]
    assert (skipped["masked"], skipped["no_text"]) == (1, 2)
    assert shadow.scene.sent() == []


@pytest.mark.parametrize("scene", [[BETTER]], indirect=True)
def test_shadow__texts_are_no_longer_stored__what_waits_is_not_sent(shadow: ShadowScene) -> None:
    shadow.create()
    shadow.served()
    follow()

    make_settings(shadow.scene.project, log_content=False)
    run_all()

    assert shadow.scene.sent() == []
    assert ExperimentAnswer.objects.get(candidate=1).error_code == "unusable_item"


@pytest.mark.parametrize("scene", [[BETTER]], indirect=True)
def test_shadow__rollout_leaves_pending__ends(shadow: ShadowScene) -> None:
    moves: list[tuple[str, dict[str, Any]]] = [("rollback", {}), ("start", {"override_gate": True, "reason": "Now."})]
    for move, body in moves:
        made = shadow.create()
        shadow.served()
        follow()
        taken = shadow.gate(made["id"])["shadow"]["taken"]

        shadow.move(made["id"], move, **body)
        run_all()
        shadow.served()
        look_again()
        follow()

        [experiment] = shadow.scene.api.get("/api/llm/experiments", {"rollout_id": made["id"]}).json()["results"]
        assert (experiment["rollout_id"], experiment["state"]) == (made["id"], "cancelled")
        assert experiment["item_count"] == taken > 0
    assert shadow.scene.sent() == []


@pytest.mark.parametrize("scene", [[BETTER]], indirect=True)
def test_shadow__between_requests__is_no_work_and_does_not_end(shadow: ShadowScene) -> None:
    shadow.create()
    shadow.served()
    shadow.run()
    assert only_experiment().state == "running"
    shadow.served("And when then?")
    look_again()
    shadow.run()
    assert ExperimentAnswer.objects.filter(candidate=1, state="done").count() == 2


@tabled
def test_create__bad_input__400_names_the_field_and_makes_nothing(
    shadow: ShadowScene, fields: dict[str, Any], field: str
) -> None:
    error = shadow.create(status=400, **fields)["error"]

    assert field in error["details"], error
    assert shadow.scene.api.get(PATH).json()["count"] == 0
    assert shadow.scene.api.get("/api/llm/experiments").json()["count"] == 0


def test_create__evaluator_that_cannot_be_used__400(shadow: ShadowScene) -> None:
    rule = shadow.evaluator_id("contains", value="seven")
    unpriced = shadow.evaluator_id(question="Better?", model="openai/unheard-of")
    nameless = shadow.evaluator_id(question="Better?")
    for evaluator_id, words in ((rule, "pairwise"), (unpriced, "no budget can be kept"), (nameless, "judge_model")):
        error = shadow.create(status=400, shadow={"evaluator_id": evaluator_id})["error"]
        assert words in error["message"]
    body = {"config_id": str(shadow.config.pk), "target_version_id": str(shadow.target_id), "gate": "shadow"}
    assert "shadow" in shadow.scene.api.post(PATH, body, format="json").json()["error"]["details"]
    make_settings(shadow.scene.project, judge_model=JUDGE)
    shadow.create(shadow={"evaluator_id": nameless})
