"""Answers and scores are paid once: by later experiments, and by two that run at the same time."""

from __future__ import annotations

from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from analytics.datasets.services import change_item, remove_item
from analytics.models import DatasetItem
from core.ledger import NOTHING
from gateway.experiments import queue
from gateway.models import Experiment, ExperimentAnswer, ExperimentScore
from integrations.models import ModelPrice
from tests.factories.evaluators import make_evaluator
from tests.gateway.experiments.conftest import Scene, by_request, run_all
from tests.gateway.experiments.test_scoring import CRITERIA, judging


def _judge(scene: Scene) -> list[dict[str, Any]]:
    judge = make_evaluator(scene.project, "judge", criteria=CRITERIA, model="openai/gpt-4.1")
    return [{"evaluator_id": str(judge.pk)}]


def _prices() -> None:
    for model in ("gpt-4o", "gpt-4.1"):
        ModelPrice.objects.create(
            provider="openai", model=model, input_cost_per_1m="2", output_cost_per_1m="10", source="manual"
        )


@pytest.mark.parametrize("scene", [[by_request(judging)]], indirect=True)
def test_second_run__nothing_has_changed__asks_and_pays_nothing(scene: Scene) -> None:
    _prices()
    dataset, evaluators = scene.dataset("Where?", "When?"), _judge(scene)
    first = scene.over(dataset, {}, {"temperature": 1}, evaluators=evaluators)
    asked = len(scene.sent())

    second = scene.over(dataset, {}, {"temperature": 1}, evaluators=evaluators)

    assert (asked, len(scene.sent())) == (8, 8)
    assert first["spent_usd"] > 0
    assert (second["state"], second["spent_usd"], second["done_count"]) == ("completed", 0.0, 4)
    answers = [one for item in scene.items(second["id"]) for one in item["answers"]]
    assert all(one["reused"] and one["cost_usd"] > 0 for one in answers)
    assert all(score["reused"] for one in answers for score in one["scores"])
    assert [item["answers"][1]["scores"][0]["value"] for item in scene.items(second["id"])] == [1.0, 1.0]


@pytest.mark.parametrize("scene", [[by_request(judging)]], indirect=True)
def test_second_run__one_item_changed_or_another_candidate__pays_for_that_alone(scene: Scene) -> None:
    dataset, evaluators = scene.dataset("Where?", "When?"), _judge(scene)
    scene.over(dataset, evaluators=evaluators)
    item = DatasetItem.objects.get(preview="Where?")
    remove_item(project_id=scene.project_id, dataset_id=dataset.pk, item_id=item.item_id, actor="user:ann")
    scene.add(dataset, "Where is it?")

    scene.over(dataset, evaluators=evaluators)
    assert [body["messages"][0]["content"] for body in scene.of_kind("answer")[2:]] == ["Where is it?"]
    assert len(scene.of_kind("grades")) == 3

    scene.over(dataset, {"max_tokens": 5}, evaluators=evaluators)
    assert len(scene.of_kind("answer")) == 5


@pytest.mark.parametrize("scene", [[by_request(judging)]], indirect=True)
def test_second_run__expected_answer_changed__only_the_score_is_given_again(scene: Scene) -> None:
    dataset, evaluators = scene.dataset("Where?"), _judge(scene)
    scene.over(dataset, evaluators=evaluators)
    item = DatasetItem.objects.get()
    change_item(
        project_id=scene.project_id,
        dataset_id=dataset.pk,
        item_id=item.item_id,
        values={"expected": "Next week."},
        actor="user:ann",
    )

    scene.over(dataset, evaluators=evaluators)

    assert (len(scene.of_kind("answer")), len(scene.of_kind("grades"))) == (1, 2)


@pytest.mark.parametrize("scene", [[by_request(judging)]], indirect=True)
def test_second_run__without_reuse__pays_again_and_keeps_scores_with_their_answers(scene: Scene) -> None:
    dataset, evaluators = scene.dataset("Where?"), _judge(scene)
    scene.over(dataset)
    scene.over(dataset, evaluators=evaluators, reuse=False)
    assert (len(scene.of_kind("answer")), len(scene.of_kind("grades"))) == (2, 1)

    # The first answer has no score yet: that of the second one is not its own.
    scene.over(dataset, evaluators=evaluators)

    assert (len(scene.of_kind("answer")), len(scene.of_kind("grades"))) == (2, 2)


def test_second_run__texts_are_gone__pays_again(scene: Scene) -> None:
    dataset = scene.dataset("Where?")
    scene.over(dataset)
    ExperimentAnswer.objects.update(answer=None)

    scene.over(dataset)

    assert len(scene.sent()) == 2


def test_equal_items__of_one_experiment__are_paid_once(scene: Scene) -> None:
    dataset = scene.dataset("Where?", "Where?", "When?")

    found = scene.over(dataset)

    assert (found["state"], found["done_count"], len(scene.sent())) == ("completed", 3, 2)


def test_two_experiments__one_is_at_it__the_other_leaves_the_answer_for_later(scene: Scene) -> None:
    dataset = scene.dataset("Where?")
    first = scene.create({}, dataset_id=str(dataset.pk))
    second = scene.create({}, dataset_id=str(dataset.pk))
    claimed = queue.claim_experiment()
    assert claimed is not None and str(claimed.pk) == first["id"]
    assert queue.claim_answer(claimed.pk) is not None

    run_all()

    waiting = scene.experiment(second["id"])
    assert (waiting["state"], waiting["done_count"], scene.sent()) == ("running", 0, [])
    Experiment.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    run_all()
    Experiment.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    run_all()
    assert {scene.experiment(made["id"])["state"] for made in (first, second)} == {"completed"}
    assert len(scene.sent()) == 1


def test_two_workers__claim_answers_with_the_same_keys_at_once__each_key_runs_once(scene: Scene) -> None:
    dataset = scene.dataset(*(f"Question {number}" for number in range(25)))
    ids = [scene.create({}, dataset_id=str(dataset.pk))["id"] for _ in range(2)]
    taken: list[ExperimentAnswer] = []

    def claim(experiment_id: Any) -> None:
        try:
            while (answer := queue.claim_answer(experiment_id)) is not None:
                taken.append(answer)
        finally:
            connection.close()

    threads = [Thread(target=claim, args=(experiment_id,)) for experiment_id in ids for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    keys = [answer.key for answer in taken]
    assert len(keys) == len(set(keys)) == 25


def test_score__that_is_there__is_not_written_twice(scene: Scene) -> None:
    contains = make_evaluator(scene.project, value="tomorrow")
    scene.over(scene.dataset("Where?"), evaluators=[{"evaluator_id": str(contains.pk)}])
    (score,) = ExperimentScore.objects.select_related("answer__item")
    again = ExperimentScore(answer=score.answer, evaluator=0, value=0.0)

    queue.store_score(again, score.answer.item.experiment_id, reserved=NOTHING, cost=NOTHING)

    assert list(ExperimentScore.objects.values_list("value", flat=True)) == [1.0]
