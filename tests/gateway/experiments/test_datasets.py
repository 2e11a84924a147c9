"""Experiments over data sets: which items they take, what is asked, and which bodies are refused."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from analytics.datasets.erasure import erase_item
from analytics.models import DatasetItem
from gateway.experiments import plan
from gateway.models import Experiment
from tests.factories.datasets import make_dataset
from tests.factories.evaluators import make_evaluator
from tests.factories.prompts import make_config, make_version
from tests.gateway.experiments.conftest import PATH, Scene, run_all


def test_experiment__data_set__takes_its_items_by_the_hash_of_their_ids(scene: Scene) -> None:
    dataset = scene.dataset(*(f"Question {number}" for number in range(9)), tags=["polite"])

    made = scene.create({}, dataset_id=str(dataset.pk), item_limit=5)

    ids = [str(item.item_id) for item in DatasetItem.objects.all()]
    items = scene.items(made["id"])
    expected = sorted(ids, key=lambda text: hashlib.sha256(text.encode()).hexdigest())[:5]
    assert [item["dataset_item_id"] for item in items] == expected
    assert {tuple(item["tags"]) for item in items} == {("polite",)}
    assert {(item["request_id"], item["requested_at"]) for item in items} == {(None, None)}
    assert made["dataset"] == {"id": str(dataset.pk), "name": dataset.name, "version": 1, "is_current": True}
    assert (made["item_count"], made["answer_count"], made["baseline"], made["report"]) == (5, 5, None, None)


def test_experiment__earlier_version__has_its_items_though_the_set_has_changed(scene: Scene) -> None:
    dataset = scene.dataset("first")
    scene.add(dataset, "second")

    found = scene.over(dataset, dataset_version=1)

    assert (found["state"], found["item_count"], found["dataset"]["is_current"]) == ("completed", 1, False)
    assert [body["messages"][0]["content"] for body in scene.sent()] == ["first"]


def test_experiment__variables_of_an_item__go_to_the_candidates_version(scene: Scene) -> None:
    config = make_config(scene.project, "support")
    version = make_version(config, "Help {{ user }}.", variables=[{"name": "user", "required": True}])
    dataset = scene.dataset("Where?", variables={"user": "Ann"})

    found = scene.over(dataset, {"version_id": str(version.pk), "temperature": 0.5})

    (body,) = scene.sent()
    assert (body["messages"][0]["content"], body["temperature"]) == ("Help Ann.", 0.5)
    assert found["summary"][0]["answered"] == 1


def test_experiment__repeats__each_candidate_answers_each_item_so_often(scene: Scene) -> None:
    dataset = scene.dataset("Where?", "When?")

    found = scene.over(dataset, {}, {"temperature": 1}, repeats=3)

    assert (found["state"], found["answer_count"], len(scene.sent())) == ("completed", 12, 12)
    (first, _) = scene.items(found["id"])
    assert [(one["label"], one["repeat"]) for one in first["answers"]] == [
        (label, repeat) for label in "AB" for repeat in (1, 2, 3)
    ]


def test_experiment__item_erased_before_its_turn__is_named_and_the_rest_goes_on(scene: Scene) -> None:
    dataset = scene.dataset("gone", "there")
    made = scene.create({}, {"temperature": 1}, dataset_id=str(dataset.pk))
    gone = DatasetItem.objects.get(preview="gone")
    erase_item(dataset, gone.item_id)

    run_all()

    assert scene.experiment(made["id"])["state"] == "completed"
    codes = {item["preview"]: [one["error"] and one["error"]["code"] for one in item["answers"]]
             for item in scene.items(made["id"])}  # fmt: skip
    assert codes == {"": ["unusable_item"] * 2, "there": [None, None]}


def test_create__evaluator_that_needs_expected_answers__400_where_there_are_none(scene: Scene) -> None:
    without = scene.dataset("Where?", expected=None)
    equals = make_evaluator(scene.project, "equals", ignore_case=True)
    body = {"candidates": [{}], "dataset_id": str(without.pk), "evaluators": [{"evaluator_id": str(equals.pk)}]}

    refused = scene.api.post(PATH, body, format="json")

    assert (refused.status_code, list(refused.json()["error"]["details"])) == (400, ["evaluators.0"])
    scene.add(without, "When?")
    assert scene.api.post(PATH, body, format="json").status_code == 201


def test_create__version_that_an_evaluator_does_not_have__400_names_the_field(scene: Scene) -> None:
    known, dataset = make_evaluator(scene.project), scene.dataset("Where?")
    evaluators = [{"evaluator_id": str(known.pk), "version": 2}]

    answer = scene.create({}, status=400, evaluators=evaluators, dataset_id=str(dataset.pk))

    assert list(answer["error"]["details"]) == ["evaluators.0.version"]
    assert not Experiment.objects.exists()


def test_create__same_evaluator_twice_or_archived_or_of_others__400(scene: Scene) -> None:
    dataset, known = scene.dataset("Where?"), make_evaluator(scene.project)
    twice = [{"evaluator_id": str(known.pk)}, {"evaluator_id": str(known.pk), "version": 1}]

    refused = scene.create({}, status=400, dataset_id=str(dataset.pk), evaluators=twice)

    assert list(refused["error"]["details"]) == ["evaluators.1"]
    known.state = "archived"
    known.save()
    refused = scene.create({}, status=400, dataset_id=str(dataset.pk), evaluators=twice[:1])
    assert list(refused["error"]["details"]) == ["evaluators.0.evaluator_id"]


def test_create__pairwise_without_a_baseline__400(scene: Scene) -> None:
    dataset = scene.dataset("Where?")
    pairwise = make_evaluator(scene.project, "pairwise", question="Which is kinder?")
    fields: dict[str, Any] = {"dataset_id": str(dataset.pk), "evaluators": [{"evaluator_id": str(pairwise.pk)}]}

    for candidates, more in (([{}], {}), ([{}, {"temperature": 1}], {"baseline": None})):
        refused = scene.create(*candidates, status=400, **fields, **more)
        assert list(refused["error"]["details"]) == ["evaluators.0"]
    assert scene.create({}, {"temperature": 1}, **fields)["baseline"] == "A"


def test_create__empty_version_and_unknown_version__are_named(scene: Scene) -> None:
    dataset = make_dataset(scene.project, items=0)
    assert scene.create({}, dataset_id=str(dataset.pk), status=409)["error"]["code"] == "no_items"

    scene.add(dataset, "Where?")

    refused = scene.create({}, dataset_id=str(dataset.pk), dataset_version=7, status=400)
    assert list(refused["error"]["details"]) == ["dataset_version"]


def test_create__too_many_answers__400(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = scene.dataset("Where?", "When?", "Why?")
    monkeypatch.setattr(plan, "MAX_ANSWERS", 11)

    refused = scene.create({}, {"temperature": 1}, dataset_id=str(dataset.pk), repeats=2, status=400)

    assert list(refused["error"]["details"]) == ["repeats"]


def test_create__min_rate__is_asked_in_place_of_every_item(scene: Scene) -> None:
    dataset, known = scene.dataset("Where?"), make_evaluator(scene.project, name="polite")
    evaluator = {"evaluator_id": str(known.pk), "required": False, "min_rate": 0.9}

    made = scene.create({}, dataset_id=str(dataset.pk), evaluators=[evaluator], max_cost_usd=None)

    assert made["evaluators"] == [
        {
            "name": "polite",
            "version": 1,
            "title": "polite@1",
            "evaluator_id": str(known.pk),
            "kind": "contains",
            "required": False,
            "must_pass": True,
            "min_rate": 0.9,
        }
    ]


def test_list__filters__by_data_set_state_and_verdict(scene: Scene) -> None:
    dataset, other = scene.dataset("Where?"), scene.dataset("When?")
    first = scene.over(dataset)
    second = scene.create({}, dataset_id=str(other.pk))
    Experiment.objects.filter(pk=first["id"]).update(verdict="passed")

    def ids(query: str) -> list[str]:
        return [row["id"] for row in scene.api.get(f"{PATH}?{query}").json()["results"]]

    assert ids(f"dataset_id={dataset.pk}") == ids("state=completed") == ids("verdict=passed") == [first["id"]]
    assert ids("") == [second["id"], first["id"]]


def test_estimate__answers_that_are_there__cost_nothing(scene: Scene) -> None:
    dataset = scene.dataset("Where?", "When?")
    scene.over(dataset)
    scene.add(dataset, "Why?")
    body = {"candidates": [{}], "dataset_id": str(dataset.pk)}

    found = scene.api.post(f"{PATH}/estimate", body, format="json").json()

    assert (found["item_count"], found["answer_count"], found["reused_answer_count"]) == (3, 3, 2)
    again = scene.api.post(f"{PATH}/estimate", {**body, "reuse": False}, format="json").json()
    assert again["reused_answer_count"] == 0
