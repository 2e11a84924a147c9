"""The gate before a rollout: what opens it, what it says is missing, and its override."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from analytics.datasets.items import read_item
from analytics.datasets.services import add_items, delete_dataset, remove_item
from analytics.models import Dataset, DatasetItem
from core.models import AuditEntry
from gateway.models import Experiment
from prompts.models import PromptVersion
from rollouts.errors import GateNotPassedError, InvalidRolloutError
from rollouts.gate.registry import check_of
from rollouts.models import Gate, Rollout, RolloutTransition
from rollouts.services import complete_rollout, roll_back_rollout, start_rollout
from tests.factories.datasets import item_body, make_dataset
from tests.factories.gates import make_verdict
from tests.factories.prompts import make_config, make_version
from tests.factories.rollouts import make_rollout
from tests.rollouts.conftest import PATH, Api, new_api
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

NO_EXPERIMENT = "No experiment over a data set compares version 2 with version 1, the baseline."


@pytest.fixture
def dataset(api: Api) -> Dataset:
    return make_dataset(api.project, name="support")


def versions(api: Api) -> tuple[PromptVersion, PromptVersion]:
    return api.config.versions.get(number=1), api.config.versions.get(number=2)


def verdict(api: Api, dataset: Dataset, verdict: str = "passed", **values: Any) -> Experiment:
    return make_verdict(dataset, *versions(api), verdict, **values)


def gated(api: Api, **fields: Any) -> str:
    found: str = api.created(gate="experiment", **fields)["id"]
    return found


def refusal(api: Api, rollout_id: str, move: str = "start", **body: Any) -> dict[str, Any]:
    """Returns the error of a transition that the gate refuses, after which everything is as before."""
    before = api.get(rollout_id)
    response = api.move(rollout_id, move, **body)
    error: dict[str, Any] = response.json()["error"]
    assert (response.status_code, error["type"], error["code"]) == (409, "conflict_error", "gate_not_passed")
    assert api.get(rollout_id) == before
    assert before["gate"]["state"] == "not_passed"
    assert (error["message"], error["details"]["gate"]) == (
        f"The gate is not passed. {before['gate']['reason']}",
        [before["gate"]["reason"]],
    )
    return error


def test_gate__none_by_default__never_asked(api: Api) -> None:
    body = api.created()
    nothing = {
        "kind": "none",
        "dataset": None,
        "state": "none",
        "experiment_id": None,
        "shadow": None,
        "reason": None,
        "by": None,
    }
    assert body["gate"] == nothing
    started = api.move(body["id"], "start").json()
    assert (started["status"], started["gate"]) == ("running", nothing)
    assert "gate" not in started["transitions"][1]["figures"]


def test_gate__no_experiment__refused_in_plain_words(api: Api) -> None:
    error = refusal(api, gated(api))
    assert error["message"] == f"The gate is not passed. {NO_EXPERIMENT}"
    assert error["details"] == {"gate": [NO_EXPERIMENT]}


def test_gate__passed__starts_and_keeps_the_experiment(api: Api, dataset: Dataset) -> None:
    experiment = verdict(api, dataset)
    rollout_id = gated(api, gate_dataset_id=str(dataset.pk))
    open_gate = {
        "kind": "experiment",
        "dataset": {"id": str(dataset.pk), "name": "support"},
        "state": "passed",
        "experiment_id": str(experiment.pk),
        "shadow": None,
        "reason": "Experiment “nightly” passed over version 1 of the data set “support”.",
        "by": None,
    }
    assert api.get(rollout_id)["gate"] == open_gate
    started = api.move(rollout_id, "start").json()
    assert (started["status"], started["gate"]) == ("running", open_gate)
    assert started["transitions"][1]["figures"]["gate"] == {
        "kind": "experiment",
        "state": "passed",
        "experiment_id": str(experiment.pk),
        "dataset_id": str(dataset.pk),
        "dataset_version": 1,
        "reason": open_gate["reason"],
    }


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ({"verdict": "worse"}, "Experiment “nightly” found version 2 worse than version 1."),
        (
            {"verdict": "undecided"},
            "Experiment “nightly” is undecided: it shows neither that version 2 is worse nor that it is not.",
        ),
        ({"verdict": "", "state": "completed"}, "Experiment “nightly” has no verdict on version 2."),
        ({"state": "running"}, "Experiment “nightly” has not ended yet."),
        ({"state": "pending"}, "Experiment “nightly” has not ended yet."),
        ({"state": "cancelled"}, "Experiment “nightly” was cancelled."),
        ({"state": "failed"}, "Experiment “nightly” failed before it had a verdict."),
        (
            {"dataset_version": 7},
            "Experiment “nightly” is over version 7 of the data set “support”, which is at version 1 now.",
        ),
        ({"baseline": ""}, "Experiment “nightly” has no baseline, and so no verdict on version 2."),
        (
            {"settings": ({"model": "a"}, {"model": "b"})},
            "Experiment “nightly” gives versions 1 and 2 different models or parameters.",
        ),
        (
            {"settings": ({}, {"temperature": 0.0})},
            "Experiment “nightly” gives versions 1 and 2 different models or parameters.",
        ),
        (
            {"settings": ({"max_tokens": 5}, {})},
            "Experiment “nightly” gives versions 1 and 2 different models or parameters.",
        ),
    ],
)
def test_gate__experiment_that_opens_none__named_with_what_it_lacks(
    api: Api, dataset: Dataset, values: dict[str, Any], missing: str
) -> None:
    experiment = verdict(api, dataset, **values)
    error = refusal(api, gated(api))
    assert error["details"] == {"gate": [missing], "experiment_id": [str(experiment.pk)]}


def test_gate__same_settings_of_both_candidates__passed(api: Api, dataset: Dataset) -> None:
    same = {"model": "openai/gpt-4o", "temperature": 0.5, "max_tokens": 100}
    verdict(api, dataset, settings=(same, same))
    assert api.move(gated(api), "start").status_code == 200


def test_gate__other_baseline__says_which(api: Api, dataset: Dataset) -> None:
    third = make_version(api.config)
    make_verdict(dataset, third, versions(api)[1])
    [missing] = refusal(api, gated(api))["details"]["gate"]
    assert missing == (
        f"Experiment “nightly” compares version 2 with another baseline than version 1: {api.config.name} version 3."
    )


def test_gate__target_was_the_baseline__opens_nothing(api: Api, dataset: Dataset) -> None:
    verdict(api, dataset, baseline="B", verdicts={"A": "passed"})
    assert refusal(api, gated(api))["details"] == {"gate": [NO_EXPERIMENT]}


def test_gate__older_than_the_versions__opens_nothing(api: Api, dataset: Dataset) -> None:
    experiment = verdict(api, dataset)
    Experiment.objects.filter(pk=experiment.pk).update(created_at=timezone.now() - timedelta(days=1))
    [missing] = refusal(api, gated(api))["details"]["gate"]
    assert missing == "Experiment “nightly” is older than versions 1 and 2."


def test_gate__several_targets__the_verdict_on_this_one_counts(api: Api, dataset: Dataset) -> None:
    baseline, target = versions(api)
    other = make_version(api.config)
    experiment = make_verdict(dataset, baseline, target, "worse", verdicts={"B": "passed", "C": "worse"})
    third = {**experiment.candidates[1], "label": "C", "version_id": str(other.pk), "prompt_version": 3}
    experiment.candidates = [*experiment.candidates, third]
    experiment.save()
    rollout_id = gated(api, target_version_id=str(other.pk))
    assert refusal(api, rollout_id)["details"]["experiment_id"] == [str(experiment.pk)]
    api.move(rollout_id, "rollback")
    assert api.move(gated(api), "start").status_code == 200


def test_gate__another_data_set_than_the_named_one__refused(api: Api, dataset: Dataset) -> None:
    verdict(api, make_dataset(api.project, name="sales"))
    rollout_id = gated(api, gate_dataset_id=str(dataset.pk))
    [missing] = refusal(api, rollout_id)["details"]["gate"]
    assert missing == "Experiment “nightly” is over the data set “sales”, and the gate asks for another one."
    verdict(api, dataset)
    assert api.move(rollout_id, "start").status_code == 200


def test_gate__experiment_without_data_set_or_of_another_project__opens_nothing(api: Api, dataset: Dataset) -> None:
    baseline, target = versions(api)
    experiment = verdict(api, dataset)
    Experiment.objects.filter(pk=experiment.pk).update(dataset_id=None)
    foreign = new_api()
    alien = verdict(api, dataset)
    Experiment.objects.filter(pk=alien.pk).update(project=foreign.project)
    assert refusal(api, gated(api))["details"] == {"gate": [NO_EXPERIMENT]}
    assert {baseline.config_id, target.config_id} == {api.config.pk}


def test_gate__nearest_is_named__not_merely_the_newest(api: Api, dataset: Dataset) -> None:
    old = verdict(api, dataset, "worse", name="old")
    worse = verdict(api, dataset, "undecided", name="nearest")
    verdict(api, dataset, dataset_version=9, name="far")
    error = refusal(api, gated(api))
    assert error["details"]["experiment_id"] == [str(worse.pk)]
    assert str(old.pk) not in str(error)


def test_gate__passed_once_and_worse_later__stays_passed(api: Api, dataset: Dataset) -> None:
    passed = verdict(api, dataset)
    verdict(api, dataset, "worse")
    started = api.move(gated(api), "start").json()
    assert started["gate"]["experiment_id"] == str(passed.pk)


def test_gate__data_set_changes_between_look_and_start__refused(api: Api, dataset: Dataset) -> None:
    verdict(api, dataset)
    rollout_id = gated(api)
    assert api.get(rollout_id)["gate"]["state"] == "passed"
    add_items(project_id=api.project.pk, dataset_id=dataset.pk, items=[read_item(item_body("New"))], actor="test")
    response = api.move(rollout_id, "start")
    assert response.status_code == 409
    assert "which is at version 2 now" in response.json()["error"]["message"]


def test_gate__item_removed__the_version_that_passed_is_not_the_present_one(api: Api, dataset: Dataset) -> None:
    verdict(api, dataset)
    rollout_id = gated(api)
    item = DatasetItem.objects.filter(dataset=dataset)[0]
    remove_item(project_id=api.project.pk, dataset_id=dataset.pk, item_id=item.item_id, actor="test")
    assert "which is at version 2 now" in refusal(api, rollout_id)["message"]


def test_gate__data_set_deleted__says_so_and_may_be_overridden(api: Api, dataset: Dataset) -> None:
    verdict(api, dataset)
    rollout_id = gated(api, gate_dataset_id=str(dataset.pk))
    delete_dataset(project_id=api.project.pk, dataset_id=dataset.pk, actor="test")
    error = refusal(api, rollout_id)
    assert "is over the data set “support”, which is deleted." in error["message"]
    assert api.get(rollout_id)["gate"]["dataset"] == {"id": str(dataset.pk), "name": None}
    assert api.move(rollout_id, "start", override_gate=True, reason="Fire.").status_code == 200


def test_gate__after_the_start__as_it_was_then(api: Api, dataset: Dataset) -> None:
    experiment = verdict(api, dataset)
    rollout_id = gated(api)
    started = api.move(rollout_id, "start").json()["gate"]
    add_items(project_id=api.project.pk, dataset_id=dataset.pk, items=[read_item(item_body("New"))], actor="test")
    experiment.delete()
    assert api.get(rollout_id)["gate"] == started
    for move in ("pause", "start", "promote", "complete"):
        assert api.move(rollout_id, move).json()["gate"] == started


def test_complete__pending__takes_the_gate_too(api: Api, dataset: Dataset) -> None:
    rollout_id = gated(api)
    assert refusal(api, rollout_id, "complete")["details"] == {"gate": [NO_EXPERIMENT]}
    done = api.move(rollout_id, "complete", override_gate=True, reason="Fire.").json()
    assert (done["status"], done["gate"]["state"]) == ("completed", "overridden")
    assert api.client.get(f"/api/llm/prompts/configs/{api.config.pk}").json()["active_version_number"] == 2


def test_rollback__pending__needs_no_gate_and_says_it_never_opened(api: Api) -> None:
    rollout_id = gated(api)
    ended = api.move(rollout_id, "rollback").json()
    assert (ended["status"], ended["gate"]["state"]) == ("rolled_back", "not_passed")
    assert ended["gate"]["reason"] == "The rollout ended before its gate was passed."


def test_override__with_reason__kept_in_the_transition_and_the_audit_log(api: Api, dataset: Dataset) -> None:
    experiment = verdict(api, dataset, "worse")
    rollout_id = gated(api)
    started = api.move(rollout_id, "start", override_gate=True, reason="Only the tone differs.").json()
    actor = started["transitions"][1]["actor"]
    assert started["gate"] == {
        "kind": "experiment",
        "dataset": None,
        "state": "overridden",
        "experiment_id": str(experiment.pk),
        "shadow": None,
        "reason": "Only the tone differs.",
        "by": actor,
    }
    kept = started["transitions"][1]
    assert (kept["reason"], kept["figures"]["gate"]["state"]) == ("Only the tone differs.", "overridden")
    missing = "Experiment “nightly” found version 2 worse than version 1."
    assert kept["figures"]["gate"]["missing"] == missing
    entry = AuditEntry.objects.get(operation="startRollout", object_kind="rollout transition")
    assert entry.changes["gate.state"] == [None, "overridden"]
    assert entry.changes["gate.missing"] == [None, missing]
    assert entry.changes["reason"] == [None, "Only the tone differs."]


def test_override__of_a_gate_that_is_passed_or_not_there__is_none(api: Api, dataset: Dataset) -> None:
    rollout_id = api.created()["id"]
    plain = api.move(rollout_id, "start", override_gate=True, reason="Sure.").json()
    assert (plain["status"], plain["gate"]["state"]) == ("running", "none")
    api.move(rollout_id, "rollback")
    verdict(api, dataset)
    assert api.move(gated(api), "start", override_gate=True, reason="Sure.").json()["gate"]["state"] == "passed"


@pytest.mark.parametrize("reason", [{}, {"reason": ""}, {"reason": "  \n"}])
@pytest.mark.parametrize("move", ["start", "complete"])
def test_override__without_a_reason__400_naming_it(api: Api, move: str, reason: dict[str, str]) -> None:
    rollout_id = gated(api)
    response = api.move(rollout_id, move, override_gate=True, **reason)
    assert (response.status_code, list(response.json()["error"]["details"])) == (400, ["reason"])
    assert api.get(rollout_id)["status"] == "pending"


@pytest.mark.parametrize("move", ["pause", "promote", "rollback"])
def test_override__of_a_transition_without_gate__400_unknown_field(api: Api, move: str) -> None:
    response = api.move(gated(api), move, override_gate=True, reason="Sure.")
    assert (response.status_code, list(response.json()["error"]["details"])) == (400, ["override_gate"])


@tabled
def test_create__invalid__400_naming_the_field(api: Api, fields: dict[str, Any], named: str) -> None:
    response = api.create(**fields)
    assert (response.status_code, list(response.json()["error"]["details"])) == (400, [named])
    assert not Rollout.objects.exists()


def test_create__data_set_of_another_project__400(api: Api) -> None:
    foreign = make_dataset(new_api().project)
    response = api.create(gate="experiment", gate_dataset_id=str(foreign.pk))
    assert (response.status_code, list(response.json()["error"]["details"])) == (400, ["gate_dataset_id"])


def test_list__many_gates__one_query_for_all_that_wait(
    api: Api, dataset: Dataset, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    verdict(api, dataset)
    first = gated(api)
    others = [make_config(api.project, versions=2) for _ in range(3)]
    for config in others:
        make_rollout(config, gate=Gate.EXPERIMENT, gate_dataset_id=dataset.pk)
    api.client.get(PATH)
    # The queries are: key, count, rows, stages, earlier rollbacks, first transitions, experiments.
    with django_assert_num_queries(7):
        rows = api.client.get(PATH).json()["results"]
    assert {row["id"]: row["gate"]["state"] for row in rows}.pop(first) == "passed"
    assert [row["gate"]["state"] for row in rows].count("not_passed") == 3


def test_services__any_caller__goes_through_the_gate(api: Api) -> None:
    rollout = make_rollout(api.config, gate=Gate.EXPERIMENT)
    ids: dict[str, Any] = {"project_id": rollout.project_id, "rollout_id": rollout.pk, "actor": "user:ann"}
    for move in (start_rollout, complete_rollout):
        with pytest.raises(GateNotPassedError, match="No experiment"):
            move(**ids)
        with pytest.raises(InvalidRolloutError, match="reason"):
            move(**ids, override_gate=True)
    assert RolloutTransition.objects.filter(rollout=rollout).count() == 1
    assert roll_back_rollout(**ids).status == "rolled_back"


def test_check__kind_without_one__stays_closed() -> None:
    with pytest.raises(LookupError):
        check_of("unheard-of")
