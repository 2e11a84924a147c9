"""What is deleted leaves experiments too: items, answers, scores, and what the log has of their requests and judges."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.conf import settings
from django.utils import timezone

from analytics.clickhouse import client
from analytics.deletion.again import Tombstone, erase_again
from analytics.deletion.services import finish_due
from analytics.identifiers import id_hash
from analytics.models import Deletion, DeletionReference, DeletionState
from analytics.shipper.loop import Shipper
from core.ledger import NOTHING
from gateway.experiments import queue
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem, ExperimentScore
from gateway.retention import expire_judgements
from tests.analytics.deletion.deleting import break_off, contents, soon
from tests.factories.evaluators import make_evaluator
from tests.factories.settings import make_settings
from tests.fakes.scripted import answer
from tests.gateway.experiments.conftest import PATH, Scene, by_request, kind_of, run_all
from tests.gateway.experiments.test_scoring import CRITERIA
from tests.night import cases

SECRET = "Weissgasse 5"
OTHER = "Elsewhere 7"


def quoting(body: dict[str, Any]) -> str:
    """Answers and judges in words of the person who asked."""
    told = SECRET if SECRET in json.dumps(body) else OTHER
    kind = kind_of(body)
    if kind == "grades":
        return json.dumps({"kind": {"reason": f"It names {told}.", "label": "good"}})
    if kind == "comparison":
        return json.dumps({"reason": f"It knows {told}.", "better": "first"})
    return f"You live at {told}."


def ship() -> None:
    """Stores what the experiment's own requests recorded."""
    shipper = Shipper(Path(settings.SPOOL_DIR))
    shipper.drain()
    shipper.close()


def evaluators(scene: Scene) -> list[dict[str, Any]]:
    judge = make_evaluator(scene.project, "judge", criteria=CRITERIA, model="openai/gpt-4.1")
    pair = make_evaluator(scene.project, "pairwise", question="Kinder?", model="openai/gpt-4.1")
    return [{"evaluator_id": str(one.pk)} for one in (judge, pair)]


def rows_with(text: str) -> list[str]:
    """Returns the tables of both databases that have the text anywhere."""
    return [
        model._meta.label
        for model in apps.get_models()
        if model._meta.managed and text in repr(list(model._default_manager.values()))
    ]


def stored_with(scene: Scene, text: str) -> list[str]:
    return rows_with(text) + [table for table, rows in contents(scene.project).items() if text in repr(rows)]


def costs(scene: Scene) -> Any:
    sums = "count(), sum(cost_usd), sum(prompt_tokens)"
    of_project = "WHERE project_id = {project:UUID}"
    return client.execute(f"SELECT {sums} FROM requests {of_project}", {"project": scene.project_id})  # noqa: S608


def delete(scene: Scene, path: str) -> None:
    assert scene.api.delete(f"/api/llm/{path}").status_code == 204
    finish_due()


@pytest.mark.parametrize("scene", [[by_request(quoting)]], indirect=True)
def test_session__deleted__nothing_of_its_text_is_left_and_figures_stay(scene: Scene) -> None:
    scene.past(f"I live at {SECRET}", session_id="mine")
    scene.past(f"I live at {OTHER}", session_id="other")
    made = scene.create(evaluators=evaluators(scene), judge=True, filter={"session_id": ["mine", "other"]})
    run_all()
    ship()
    before, summed = scene.experiment(made["id"]), costs(scene)
    scores = list(ExperimentScore.objects.order_by("pk").values_list("value", "cost_usd"))
    assert {"gateway.ExperimentItem", "gateway.ExperimentAnswer", "gateway.ExperimentScore", "payloads"} <= set(
        stored_with(scene, SECRET)
    )

    delete(scene, "sessions/mine")

    assert stored_with(scene, SECRET) == []
    assert {"gateway.ExperimentAnswer", "gateway.ExperimentScore", "payloads"} <= set(stored_with(scene, OTHER))
    after = scene.experiment(made["id"])
    assert (after["erased_items"], after["expired_items"]) == (1, 0)
    assert (after["summary"], after["spent_usd"], after["state"]) == (
        before["summary"],
        before["spent_usd"],
        "completed",
    )
    assert list(ExperimentScore.objects.order_by("pk").values_list("value", "cost_usd")) == scores
    assert costs(scene) == summed
    assert scene.api.delete("/api/llm/sessions/mine").status_code == 404


@pytest.mark.parametrize("scene", [[by_request(quoting)]], indirect=True)
def test_request__deleted__is_out_of_experiments_when_the_answer_is_there(scene: Scene) -> None:
    request_id = scene.past(f"I live at {SECRET}")
    scene.create(evaluators=evaluators(scene))
    run_all()
    ship()

    assert scene.api.delete(f"/api/llm/requests/{request_id}").status_code == 204

    assert stored_with(scene, SECRET) == []


@pytest.mark.parametrize("scene", [[by_request(quoting)]], indirect=True)
def test_session__in_a_data_set__leaves_every_experiment_over_it_also_what_was_reused(scene: Scene) -> None:
    request_id = scene.past(f"I live at {SECRET}", session_id="mine")
    chosen = evaluators(scene)
    dataset, copy = scene.dataset(), scene.dataset()
    scene.add(dataset, f"I live at {SECRET}", source_request_id=request_id)
    # The same input without a source: its own text stays, the answer to the other one does not.
    scene.add(copy, f"I live at {SECRET}")
    first = scene.over(dataset, {}, {"temperature": 1}, evaluators=chosen)
    second = scene.over(dataset, {}, {"temperature": 1}, evaluators=chosen)
    third = scene.over(copy, {}, {"temperature": 1}, evaluators=chosen)
    ship()
    assert ExperimentAnswer.objects.filter(reused=True).count() == 4

    delete(scene, f"requests/{request_id}")

    assert [scene.experiment(one["id"])["erased_items"] for one in (first, second, third)] == [1, 1, 0]
    assert set(stored_with(scene, SECRET)) == {"analytics.DatasetItem", "gateway.ExperimentItem"}
    assert [item["preview"] for item in scene.items(third["id"])] == [f"I live at {SECRET}"]
    again = scene.over(copy, {}, {"temperature": 1}, evaluators=chosen)
    assert not any(one["reused"] for item in scene.items(again["id"]) for one in item["answers"])


@pytest.mark.parametrize("scene", [[by_request(quoting)]], indirect=True)
def test_item__erased_from_its_data_set__leaves_the_log_too(scene: Scene) -> None:
    dataset = scene.dataset(f"I live at {SECRET}", f"I live at {OTHER}")
    made = scene.over(dataset, {}, {"temperature": 1}, evaluators=evaluators(scene))
    ship()
    item_id = ExperimentItem.objects.get(preview__contains=SECRET).dataset_item_id

    delete(scene, f"datasets/{dataset.pk}/items/{item_id}?erase=true")

    assert stored_with(scene, SECRET) == []
    assert scene.experiment(made["id"])["erased_items"] == 1
    assert set(DeletionReference.objects.values_list("deletion__kind", flat=True)) == {"item"}
    finish_due(soon(8 * 24 * 60))
    assert not DeletionReference.objects.exists()


@pytest.mark.parametrize("step", cases(["payloads", "anonymised", "requests"], by_day=["anonymised"]))
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("scene", [[by_request(quoting)]], indirect=True)
def test_deletion__broken_off__goes_on_and_leaves_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> None:
    scene.past(f"I live at {SECRET}", session_id="mine")
    scene.create(evaluators=evaluators(scene))
    run_all()
    ship()
    summed = costs(scene)
    with monkeypatch.context() as patched:
        break_off(patched, step, after=when == "after")
        delete(scene, "sessions/mine")
    assert Deletion.objects.get().state == DeletionState.PENDING
    with monkeypatch.context() as patched:  # The requests that quote, in their turn.
        break_off(patched, step, after=when == "after")
        finish_due(soon(5))

    finish_due(soon(10))
    finish_due(soon(15))

    assert Deletion.objects.get().state == DeletionState.ERASED
    assert stored_with(scene, SECRET) == []
    assert costs(scene) == summed


@pytest.mark.parametrize("scene", [[by_request(quoting)]], indirect=True)
def test_records__of_judges_and_answers_that_arrive_late__go_too(scene: Scene) -> None:
    scene.past(f"I live at {SECRET}", session_id="mine")
    scene.create(evaluators=evaluators(scene))
    run_all()
    delete(scene, "sessions/mine")

    ship()
    assert "payloads" in stored_with(scene, SECRET)
    finish_due(soon(5))

    assert stored_with(scene, SECRET) == []


def test_request__deleted_before_its_answers_are_made__they_are_named(scene: Scene) -> None:
    request_id = scene.past(f"I live at {SECRET}")
    contains = make_evaluator(scene.project, value="tomorrow")
    plain, scored = scene.create(), scene.create(evaluators=[{"evaluator_id": str(contains.pk)}])

    delete(scene, f"requests/{request_id}")
    run_all()

    assert scene.sent() == []
    for made in (plain, scored):
        (item,) = scene.items(made["id"])
        assert {one["error"]["code"] for one in item["answers"]} == {"unusable_item"}
        assert scene.experiment(made["id"])["state"] == "completed"
    (item,) = scene.items(scored["id"])
    assert {score["reason"] for one in item["answers"] for score in one["scores"]} == {"unusable_item"}


def test_answer__under_way_when_its_request_is_deleted__is_not_stored(scene: Scene) -> None:
    request_id = scene.past(f"I live at {SECRET}")
    made = scene.create()
    claimed = queue.claim_answer(UUID(made["id"]))
    assert claimed is not None
    delete(scene, f"requests/{request_id}")

    claimed.answer = {"role": "assistant", "content": SECRET}
    queue.store_answer(claimed, is_scored=True, cost=NOTHING)
    score = ExperimentScore(answer=claimed, evaluator=0, value=1.0, detail=SECRET)
    queue.store_score(score, UUID(made["id"]), reserved=NOTHING, cost=NOTHING)

    assert rows_with(SECRET) == []
    assert ExperimentScore.objects.get().value == 1.0


@pytest.mark.parametrize("scene", [[answer("Yes.")]], indirect=True)
def test_experiment__of_a_request_that_the_log_has_no_more__is_found_by_its_session(scene: Scene) -> None:
    scene.past(f"I live at {SECRET}", session_id="mine")
    scene.create()
    client.execute("TRUNCATE TABLE requests", {})

    delete(scene, "sessions/mine")

    assert rows_with(SECRET) == []
    assert scene.api.delete("/api/llm/sessions/mine").status_code == 404


@pytest.mark.parametrize("scene", [[by_request(quoting)]], indirect=True)
def test_restored__deleted_before__is_erased_again_with_what_quotes_it(scene: Scene) -> None:
    request_id = scene.past(f"I live at {SECRET}")
    scene.create(evaluators=evaluators(scene))
    run_all()
    ship()
    client.execute("DELETE FROM requests WHERE request_id = {id:UUID}", {"id": request_id})
    client.execute("DELETE FROM payloads WHERE request_id = {id:UUID}", {"id": request_id})
    long_ago = timezone.now() - timedelta(days=20)
    found = Tombstone(UUID(int=1), scene.project_id, "request", id_hash(request_id), "user:ann", long_ago)

    erase_again([found], log=True, done=lambda count: None)
    assert rows_with(SECRET) == []
    finish_due(soon(1))

    assert stored_with(scene, SECRET) == []
    finish_due(soon(2 * 24 * 60))
    assert Deletion.objects.get().state == DeletionState.CLOSED


def test_retention__of_the_request_is_over__its_texts_go_and_the_experiment_stays(scene: Scene) -> None:
    make_settings(scene.project, retention_days=30)
    scene.past(f"I live at {SECRET}")
    scene.past(f"I live at {OTHER}")
    made = scene.create()
    run_all()
    old = ExperimentItem.objects.get(preview__contains=SECRET)
    ExperimentItem.objects.filter(pk=old.pk).update(requested_at=timezone.now() - timedelta(days=31))

    expire_judgements()

    items = {item["position"]: item for item in scene.items(made["id"])}
    assert items.pop(old.position)["preview"] == ""
    assert [item["answers"][0]["message"]["content"] for item in items.values()] == ["Tomorrow."]
    found = scene.experiment(made["id"])
    assert (found["expired_items"], found["erased_items"], found["state"]) == (1, 0, "completed")
    expire_judgements()
    assert scene.experiment(made["id"])["expired_items"] == 1


@pytest.mark.parametrize("retention", ["project", "kept"])
def test_retention__of_an_item_of_a_data_set__is_that_of_its_set(scene: Scene, retention: str) -> None:
    make_settings(scene.project, retention_days=30)
    dataset = scene.dataset(f"I live at {SECRET}")
    dataset.retention = retention
    dataset.save()
    made = scene.over(dataset)
    long_ago = timezone.now() - timedelta(days=31)
    dataset.items.update(retained_from=long_ago)
    ExperimentItem.objects.update(requested_at=long_ago)

    expire_judgements()

    assert bool(rows_with(SECRET)) == (retention == "kept")
    assert scene.experiment(made["id"])["expired_items"] == (0 if retention == "kept" else 1)
    Experiment.objects.update(created_at=long_ago)
    expire_judgements()
    assert scene.api.get(f"{PATH}/{made['id']}").status_code == 404
