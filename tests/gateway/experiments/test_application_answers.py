"""Answers that an application makes itself: sent once, scored like the gateway's, and compared with them."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.datasets.erasure import erase_item
from analytics.models import DatasetItem
from gateway.models import ExperimentAnswer
from tests.factories.evaluators import make_evaluator
from tests.factories.settings import make_settings
from tests.gateway.experiments.conftest import PATH, Scene, run_all


def _rule(scene: Scene) -> list[dict[str, Any]]:
    return [{"evaluator_id": str(make_evaluator(scene.project, value="seven").pk)}]


def _give(scene: Scene, made: dict[str, Any], position: int, *, status: int = 200, **fields: Any) -> dict[str, Any]:
    body = {"label": "B", **({"content": "At seven."} if "error" not in fields else {}), **fields}
    answered = scene.api.put(f"{PATH}/{made['id']}/items/{position}/answer", body, format="json")
    assert answered.status_code == status, answered.content
    found: dict[str, Any] = answered.json()
    return found


def _over_two_items(scene: Scene, **fields: Any) -> dict[str, Any]:
    dataset = scene.dataset("Where?", "When?")
    chosen: dict[str, Any] = {"dataset_id": str(dataset.pk), "evaluators": _rule(scene), **fields}
    made = scene.create({}, {"application": "agent 1.4"}, **chosen)
    run_all()
    return made


def test_answers__of_an_application__are_scored_and_compared_with_the_gateways(scene: Scene) -> None:
    made = _over_two_items(scene)
    candidate = made["candidates"][1]
    assert {name: value for name, value in candidate.items() if value is not None} == {
        "label": "B", "title": "agent 1.4", "application": "agent 1.4",
    }  # fmt: skip
    assert (scene.experiment(made["id"])["state"], len(scene.sent())) == ("running", 2)
    assert scene.items(made["id"])[0]["answers"][1]["state"] == "awaited"

    given: dict[str, Any] = {"cost_usd": 0.25, "latency_ms": 900, "prompt_tokens": 7, "completion_tokens": 3}
    given |= {"model": "mine", "request_id": "abc"}
    entry = _give(scene, made, 1, **given)["answers"][1]
    _give(scene, made, 2, error="The tool was away.")
    run_all()

    assert {name: entry[name] for name in given if name != "model"} | {"model": entry["model_used"]} == given
    found = scene.experiment(made["id"])
    assert (found["state"], found["spent_usd"]) == ("completed", scene_cost(found))
    answers = [item["answers"][1] for item in scene.items(made["id"])]
    assert answers[0]["message"] == {"role": "assistant", "content": "At seven."}
    assert answers[1]["error"] == {"code": "application_failed", "message": "The tool was away."}
    scores = [(one["scores"][0]["value"], one["scores"][0]["reason"]) for one in answers]
    assert scores == [(1.0, "The text is there."), (0.0, "not_answered")]
    (target,) = found["report"]["targets"]
    assert (target["label"], target["evaluators"][0]["pairs"]) == ("B", 2)


def scene_cost(found: dict[str, Any]) -> float:
    """Returns what the gateway's own answers cost: an application's are not spent by the experiment."""
    cost: float = found["summary"][0]["total_cost_usd"]
    return cost


def test_answer__sent_again__is_stored_once_and_another_is_refused(scene: Scene) -> None:
    made = _over_two_items(scene)
    first = _give(scene, made, 1)

    assert _give(scene, made, 1) == first
    assert _give(scene, made, 1, content="At eight.", status=409)["error"]["code"] == "answer_given"
    assert _give(scene, made, 9, status=404)["error"]["code"] == "experiment_item_not_found"
    assert _give(scene, made, 1, label="A", status=409)["error"]["code"] == "not_of_application"
    assert "content" in _give(scene, made, 2, content=None, status=400)["error"]["message"]
    scene.api.post(f"{PATH}/{made['id']}/cancel", {}, format="json")
    assert _give(scene, made, 2, status=409)["error"]["code"] == "experiment_ended"


def test_application__compared_with_its_earlier_version__answers_only_for_the_new_one(scene: Scene) -> None:
    dataset, evaluators = scene.dataset("Where?"), _rule(scene)
    chosen: dict[str, Any] = {"dataset_id": str(dataset.pk), "evaluators": evaluators}
    former = scene.create({"application": "agent 1.3"}, **chosen)
    _give(scene, former, 1, label="A", content="At eight.")
    run_all()

    made = scene.create({"application": "agent 1.3"}, {"application": "agent 1.4"}, **chosen)
    (before,) = scene.items(made["id"])
    _give(scene, made, 1)
    run_all()

    assert [(one["reused"], one["state"]) for one in before["answers"]] == [(True, "answered"), (False, "awaited")]
    (item,) = scene.items(made["id"])
    assert [one["scores"][0]["value"] for one in item["answers"]] == [0.0, 1.0]
    assert (scene.experiment(made["id"])["state"], scene.sent()) == ("completed", [])


def test_item__erased_while_its_answer_is_awaited__keeps_nobody_waiting(scene: Scene) -> None:
    made = _over_two_items(scene)
    item = DatasetItem.objects.get(preview="Where?")
    position = next(row["position"] for row in scene.items(made["id"]) if row["preview"] == "Where?")
    erase_item(item.dataset, item.item_id)
    assert _give(scene, made, position, status=409)["error"]["code"] == "answer_given"
    _give(scene, made, 3 - position)
    run_all()

    assert scene.experiment(made["id"])["state"] == "completed"
    assert not ExperimentAnswer.objects.filter(item__position=position, answer__isnull=False).exists()


def test_answer__project_without_texts__keeps_its_figures_alone(scene: Scene) -> None:
    made = _over_two_items(scene)
    make_settings(scene.project, log_content=False)

    entry = _give(scene, made, 1, latency_ms=5)["answers"][1]

    assert (entry["message"], entry["latency_ms"]) == (None, 5)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"candidates": [{"application": "mine", "temperature": 1}]}, "candidates.0.application"),
        ({"candidates": [{"application": "mine"}], "judge": True}, "judge"),
        ({"candidates": [{"application": "mine"}, {}], "dataset_id": None}, "candidates.0.application"),
    ],
)
def test_experiment__application_that_cannot_answer__is_refused(
    scene: Scene, fields: dict[str, Any], field: str
) -> None:
    body = {"dataset_id": str(scene.dataset("Where?").pk), **fields}

    answered = scene.api.post(PATH, body, format="json")

    assert answered.status_code == 400
    assert answered.json()["error"]["message"].startswith(f"{field}: ")
