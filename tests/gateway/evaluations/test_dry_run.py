"""Dry runs of evaluators over HTTP: scores, reasons, costs, and what is kept."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from analytics.models import Score
from integrations.models import ModelPrice
from tests.fakes.scripted import answer, raw, status
from tests.gateway.evaluations.conftest import Scene
from tests.gateway.spooled import spooled_entries

pytestmark = pytest.mark.django_db(transaction=True)

JUDGE = "openai/judge-1"
GROUNDED = {
    "name": "grounded",
    "meaning": "Every claim stands in the conversation.",
    "labels": [{"name": "yes", "meaning": "All do.", "score": 1}, {"name": "no", "meaning": "One is not.", "score": 0}],
}
CUT = {"index": 0, "message": {"role": "assistant", "content": '{"grounded": {"rea'}, "finish_reason": "length"}
NO = answer(json.dumps({"grounded": {"reason": "Seven is nowhere.", "label": "no"}}))


def of_judge(request_id: str) -> Any:
    """Returns the record of the judge's own request about a request."""
    records = [entry.record for entry in spooled_entries(settings.SPOOL_DIR)]
    (record,) = [one for one in records if one.attributes.get("judged_request_id") == request_id]
    return record


def test_rule__over_requests__scores_each_and_costs_nothing(scene: Scene) -> None:
    ids = [scene.answered("At seven."), scene.answered("I do not know.")]
    found = scene.dry_run(scene.evaluator("contains", value="seven"), *ids, str(unknown := uuid4()))

    assert [(one["request_id"], one["score"], one["is_good"]) for one in found["results"]] == [
        (ids[0], 1, True),
        (ids[1], 0, False),
        (str(unknown), None, None),
    ]
    assert found["results"][2]["reason"] == "request_not_found"
    assert (found["scored"], found["good"], found["total_cost_usd"]) == (2, 1, 0)
    assert scene.script.received == []


def test_rule__other_definition_and_expected_answer__are_tried_and_not_kept(scene: Scene) -> None:
    evaluator_id = scene.evaluator("contains", value="seven")
    found = scene.dry_run(evaluator_id, scene.answered("At eight."), definition={}, expected="eight")

    assert found["good"] == 1
    assert scene.api.get(f"/api/llm/evaluators/{evaluator_id}").json()["definition"]["value"] == "seven"


def test_schema__of_the_request__is_kept_or_not(scene: Scene) -> None:
    schema = {"type": "object", "required": ["at"]}
    form = {"type": "json_schema", "json_schema": {"name": "departure", "schema": schema}}
    good, bad = (scene.answered(text, response_format=form) for text in ('{"at": 7}', "{}"))
    found = scene.dry_run(scene.evaluator("json_schema"), good, bad, scene.answered())

    assert [one["score"] for one in found["results"]] == [1, 0, None]
    assert found["results"][2]["reason"] == "no_schema"


@pytest.mark.parametrize("scene", [[NO]], indirect=True)
def test_judge__labels__give_a_score_a_detail_and_a_cost(scene: Scene) -> None:
    ModelPrice.objects.create(
        provider="openai", model="judge-1", input_cost_per_1m="2", output_cost_per_1m="10", source="manual"
    )
    request_id = scene.answered()
    found = scene.dry_run(scene.evaluator("judge", criteria=[GROUNDED], model=JUDGE), request_id, expected="At eight.")

    (one,) = found["results"]
    assert (one["score"], one["reason"], one["detail"]) == (0, "grounded: no", "grounded: Seven is nowhere.")
    record = of_judge(request_id)
    assert record.source == "judge"
    assert Decimal(str(one["cost_usd"])) == Decimal(record.cost_usd) == Decimal("0.000092")
    question = json.loads(json.loads(scene.script.received[0].body)["messages"][1]["content"])
    assert question["expected"] == "At eight."
    assert not Score.objects.exists()


@pytest.mark.parametrize(
    ("scene", "reason"),
    [
        ([status(500)], "judge_failed"),
        ([answer("no JSON")], "judge_failed"),
        ([answer('{"grounded": {"reason": "So.", "label": "perhaps"}}')], "judge_failed"),
        ([raw(200, b"\xff{")], "judge_failed"),
    ],
    indirect=["scene"],
)
def test_judge__fails_or_answers_nonsense__is_named(scene: Scene, reason: str) -> None:
    found = scene.dry_run(scene.evaluator("judge", criteria=[GROUNDED], model=JUDGE), scene.answered())

    (one,) = found["results"]
    assert (one["score"], one["reason"]) == (None, reason) and one["detail"]


@pytest.mark.parametrize("scene", [[answer(choices=[CUT])]], indirect=True)
@pytest.mark.parametrize(("given", "limit"), [({}, 8_000), ({"max_tokens": 20}, 20)])
def test_judge__cut_at_its_limit__says_what_to_raise(scene: Scene, given: dict[str, int], limit: int) -> None:
    evaluator_id = scene.evaluator("judge", criteria=[GROUNDED], model=JUDGE, **given)

    (one,) = scene.dry_run(evaluator_id, scene.answered())["results"]

    assert f"cut after {limit:,} tokens: raise the evaluator's max_tokens" in one["detail"]
    assert json.loads(scene.script.received[0].body)["max_completion_tokens"] == limit


@pytest.mark.parametrize("scene", [[NO]], indirect=True)
@pytest.mark.parametrize(("model", "limit"), [("gpt-4o", 1_000), ("o3", 8_000)])
def test_judge__without_a_limit_of_its_own__has_that_of_its_model(scene: Scene, model: str, limit: int) -> None:
    scene.dry_run(scene.evaluator("judge", criteria=[GROUNDED], model=f"openai/{model}"), scene.answered())

    assert json.loads(scene.script.received[0].body)["max_completion_tokens"] == limit


def test_judge__no_model_is_named__says_so(scene: Scene) -> None:
    found = scene.dry_run(scene.evaluator("judge", criteria=[GROUNDED]), scene.answered())

    assert found["results"][0]["reason"] == "no_judge_model"


def vectors(*rows: list[float]) -> bytes:
    data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
    usage = {"prompt_tokens": 4, "total_tokens": 4}
    return json.dumps({"object": "list", "data": data, "model": "small-1", "usage": usage}).encode()


@pytest.mark.parametrize(
    ("scene", "score"),
    [
        ([raw(200, vectors([3.0, 4.0], [4.0, 3.0]))], 0.96),
        ([raw(200, vectors([1.0, 0.0], [-1.0, 0.0]))], 0.0),
        ([raw(200, vectors([1.0, 0.0], [1.0]))], None),
        ([raw(200, vectors([0.0, 0.0], [1.0, 0.0]))], None),
        ([raw(200, vectors([1.0]))], None),
    ],
    indirect=["scene"],
)
def test_similarity__two_embeddings__is_their_cosine(scene: Scene, score: float | None) -> None:
    evaluator_id = scene.evaluator("similarity", model="openai/small-1")
    found = scene.dry_run(evaluator_id, scene.answered("At seven."), expected="Seven o'clock.")

    assert found["results"][0]["score"] == (score if score is None else pytest.approx(score))
    assert json.loads(scene.script.received[0].body)["input"] == ["At seven.", "Seven o'clock."]


def test_pairwise__one_answer__needs_two(scene: Scene) -> None:
    found = scene.dry_run(scene.evaluator("pairwise", question="Which is right?", model=JUDGE), scene.answered())

    assert found["results"][0]["reason"] == "needs_two_answers"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"request_ids": []}, "request_ids"),
        ({"request_ids": ["x"]}, "request_ids"),
        ({"request_ids": [str(uuid4()) for _ in range(21)]}, "request_ids"),
        ({"definition": {"value": 5}}, "definition.value"),
    ],
)
def test_dry_run__bad_input__is_named(scene: Scene, body: dict[str, Any], named: str) -> None:
    error = scene.dry_run(
        scene.evaluator("contains", value="a"), **{"request_ids": [str(uuid4())], **body}, expected_status=400
    )["error"]

    assert error["message"].startswith(named)
