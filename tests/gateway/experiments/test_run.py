"""Experiments from the request to the summary, with a provider that answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from gateway.experiments import queue
from gateway.models import Experiment, ExperimentAnswer
from tests.factories.prompts import make_config, make_version
from tests.factories.settings import make_settings
from tests.fakes.scripted import answer, status
from tests.gateway.experiments.conftest import MODEL, PATH, Scene, run_all
from tests.gateway.spooled import spooled_entries


def test_experiment__two_candidates__every_item_is_answered_once_by_each(scene: Scene) -> None:
    past = [scene.past(f"Question {number}") for number in range(3)]
    made = scene.create({"temperature": 0.25}, {"model": "openai/gpt-4.1"}, name="cold or new")
    assert (made["state"], made["item_count"], made["done_count"]) == ("pending", 3, 0)

    run_all()

    found = scene.experiment(made["id"])
    assert (found["state"], found["answer_count"], found["done_count"]) == ("completed", 6, 6)
    assert [summary["answered"] for summary in found["summary"]] == [3, 3]
    items = scene.items(made["id"])
    assert [entry["request_id"] for entry in items] == past[::-1]
    assert {entry["answers"][0]["message"]["content"] for entry in items} == {"Tomorrow."}
    assert sorted((body["model"], body.get("temperature")) for body in scene.sent()) == [
        *[("gpt-4.1", None)] * 3,
        *[("gpt-4o", 0.25)] * 3,
    ]


def test_experiment__its_requests__are_recorded_with_source_experiment_and_no_user(scene: Scene) -> None:
    past = scene.past(fields={"user": "ann"}, user_id="ann", session_id="s")
    made = scene.create()

    run_all()

    records = [e.record for e in spooled_entries(settings.SPOOL_DIR) if e.record.project_id == str(scene.project.pk)]
    assert {(r.source, r.user_id, r.session_id) for r in records} == {("experiment", "", "")}
    assert {r.attributes["experiment_item_request_id"] for r in records} == {past}
    ids = {one["request_id"] for entry in scene.items(made["id"]) for one in entry["answers"]}
    assert ids == {record.request_id for record in records}


def test_experiment__request_with_the_managed_prompt__gets_each_version_with_its_own_variables(scene: Scene) -> None:
    config = make_config(scene.project, "support")
    variables = [{"name": "user", "type": "string", "required": True}]
    first = make_version(config, "Help {{ user }}.", variables=variables)
    second = make_version(config, "Serve {{ user }} kindly.", variables=variables, temperature=0.5)
    named = {"prompt_config": "support", "prompt_variables": {"user": "Ann"}}
    scene.past(fields=named, prompt_config_id=str(config.pk), prompt_version=1)
    made = scene.create({"version_id": str(first.pk)}, {"version_id": str(second.pk)})

    run_all()

    texts = {body["messages"][0]["content"]: body.get("temperature") for body in scene.sent()}
    assert texts == {"Help Ann.": None, "Serve Ann kindly.": 0.5}
    (entry,) = scene.items(made["id"])
    assert [one["prompt_version"] for one in entry["answers"]] == [1, 2]


def test_experiment__request_without_a_prompt__gets_the_version_unless_it_has_a_system_message(scene: Scene) -> None:
    config = make_config(scene.project, "support")
    version = make_version(config, "Be brief.")
    scene.past("plain")
    own = [{"role": "system", "content": "Mine."}, {"role": "user", "content": "with its own"}]
    scene.past(fields={"messages": own})
    made = scene.create({}, {"version_id": str(version.pk)})

    run_all()

    systems = sorted(body["messages"][0]["content"] for body in scene.sent() if body["messages"][0]["role"] == "system")
    assert systems == ["Be brief.", "Mine.", "Mine."]
    with_system, plain = scene.items(made["id"])
    assert [one["prompt_version"] for one in plain["answers"]] == [None, 1]
    assert "system message" in with_system["answers"][1]["warning"]


def test_experiment__candidate_without_a_version__keeps_the_version_that_served_the_request(scene: Scene) -> None:
    config = make_config(scene.project, "support")
    make_version(config, "Old.")
    newer = make_version(config, "New.")
    scene.past(fields={"prompt_config": "support"}, prompt_config_id=str(config.pk), prompt_version=2)
    scene.create({"model": MODEL}, {"version_id": str(newer.pk), "temperature": 1})

    run_all()

    assert {body["messages"][0]["content"] for body in scene.sent()} == {"New."}


@pytest.mark.parametrize("scene", [[status(500)]], indirect=True)
def test_experiment__provider_fails__the_answer_has_the_error_and_the_experiment_ends(scene: Scene) -> None:
    make_settings(scene.project, retry_enabled=False)
    scene.past()
    made = scene.create()

    run_all()

    found = scene.experiment(made["id"])
    assert (found["state"], found["failure_code"]) == ("failed", "provider")
    assert "provider_unavailable" in found["failure"]
    (entry,) = scene.items(made["id"])
    assert "provider_unavailable" in {one["error"] and one["error"]["code"] for one in entry["answers"]}


def test_experiment__missing_variable__is_the_answers_error(scene: Scene) -> None:
    config = make_config(scene.project, "support")
    version = make_version(config, "Hi {{ x }}", variables=[{"name": "x", "required": True}])
    scene.past()
    made = scene.create({}, {"version_id": str(version.pk)})

    run_all()

    (entry,) = scene.items(made["id"])
    assert [one["error"] and one["error"]["code"] for one in entry["answers"]] == [None, "missing_variable"]


def test_experiment__budget_of_the_month_is_spent__ends_as_failed(scene: Scene) -> None:
    make_settings(scene.project, monthly_budget_usd=0, budget_hard_stop=True)
    scene.past()
    made = scene.create()

    run_all()

    found = scene.experiment(made["id"])
    assert (found["state"], found["done_count"]) == ("failed", 0)
    assert "budget" in found["failure"]
    assert scene.sent() == []


def test_experiment__rate_limit__waits_for_room_and_doubles_nothing(scene: Scene) -> None:
    make_settings(scene.project, rate_limit_enabled=True, rate_limit_rpm=3)
    for number in range(3):
        scene.past(f"Question {number}")
    made = scene.create()

    run_all()

    found = scene.experiment(made["id"])
    assert found["state"] == "running"
    assert found["done_count"] == len(scene.script.received) <= 3
    experiment = Experiment.objects.get(pk=made["id"])
    assert experiment.claimed_until is not None and experiment.claimed_until > timezone.now()
    assert not queue.is_anything_due()


def test_experiment__worker_died__another_takes_the_same_rows_again(scene: Scene) -> None:
    scene.past()
    made = scene.create()
    claimed = queue.claim_experiment()
    assert claimed is not None and queue.claim_answer(claimed.pk) is not None
    assert queue.claim_experiment() is None
    Experiment.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))

    run_all()

    assert (scene.experiment(made["id"])["state"], ExperimentAnswer.objects.count()) == ("completed", 2)
    assert len(scene.script.received) == 2


def test_experiment__cancelled__nothing_more_is_asked(scene: Scene) -> None:
    scene.past()
    made = scene.create()
    cancelled = scene.api.post(f"{PATH}/{made['id']}/cancel", {}, format="json")
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")

    run_all()

    assert scene.sent() == []
    again = scene.api.post(f"{PATH}/{made['id']}/cancel", {}, format="json")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "experiment_ended")


@pytest.mark.parametrize("scene", [[answer("Late.", delay=30)]], indirect=True)
def test_experiment__cancelled_while_it_runs__hangs_up(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.past()
    made = scene.create()
    keep = queue.keep_claim

    def keep_or_cancel(experiment_id: Any) -> bool:
        if scene.script.received:
            Experiment.objects.filter(pk=experiment_id).update(state="cancelled")
        return keep(experiment_id)

    monkeypatch.setattr(queue, "keep_claim", keep_or_cancel)
    run_all()

    assert scene.experiment(made["id"])["done_count"] == 0
    records = [e.record for e in spooled_entries(settings.SPOOL_DIR) if e.record.project_id == str(scene.project.pk)]
    assert {record.outcome for record in records} == {"cancelled"}


def test_experiment__judge__scores_and_names_a_verdict(scene: Scene) -> None:
    make_settings(scene.project, judge_model="")
    scene.past()
    made = scene.create(judge=True)

    run_all()

    (entry,) = scene.items(made["id"])
    assert {one["judge_error"] for one in entry["answers"]} == {
        "judge_model: the project's settings name no judge model"
    }
    assert entry["verdict"] is None


@pytest.mark.parametrize("scene", [[answer("a\x00b\ud800c")]], indirect=True)
def test_experiment__answer_with_characters_that_databases_refuse__is_kept_without_them(scene: Scene) -> None:
    scene.past()
    made = scene.create()

    run_all()

    (entry,) = scene.items(made["id"])
    assert {one["message"]["content"] for one in entry["answers"]} == {"a\ufffdb\ufffdc"}
