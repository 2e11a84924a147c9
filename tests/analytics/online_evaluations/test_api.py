"""The endpoints of online evaluations."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.models import EvaluationTask, OnlineEvaluation
from core.models import Project
from tests.factories.core import client_of, make_project
from tests.factories.evaluators import make_evaluator
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

PATH = "/api/llm/online-evaluations"
CRITERIA = [
    {
        "name": "polite",
        "meaning": "It is polite.",
        "labels": [
            {"name": "yes", "meaning": "It is.", "score": 1},
            {"name": "no", "meaning": "It is not.", "score": 0},
        ],
    }
]


def body(project: Project, **fields: Any) -> dict[str, Any]:
    return {"evaluator_id": str(make_evaluator(project).pk), "rate": 0.1, **fields}


def refused(api: APIClient, given: dict[str, Any], *, status: int = 400) -> dict[str, Any]:
    answered = api.post(PATH, given, format="json")
    assert answered.status_code == status, answered.content
    found: dict[str, Any] = answered.json()["error"]
    assert OnlineEvaluation.objects.count() in (0, 5)
    return found


def test_create__minimal__is_active_and_has_nothing_due(api: APIClient, project: Project) -> None:
    made = api.post(PATH, body(project), format="json")

    assert made.status_code == 201, made.content
    found = made.json()
    assert (found["state"], found["rate"], found["matched"], found["filter"]) == ("active", 0.1, False, {})
    assert found["evaluator"]["title"].endswith("@1")
    assert found["evaluator"]["is_newest"]
    assert found["tasks"] == {
        "sampled": 0, "due": 0, "done": 0, "missing": 0, "failed": 0, "failed_by_reason": {}, "skipped": 0,
        "skipped_by_reason": {"budget": 0, "no_text": 0, "masked": 0, "too_old": 0, "disabled": 0},
    }  # fmt: skip
    assert (found["spent_usd"], found["is_spent_out"], found["oldest_due_at"]) == (0, False, None)
    assert api.get(f"{PATH}/{found['id']}").json() == found
    listed = api.get(PATH).json()
    assert (listed["count"], [one["id"] for one in listed["results"]]) == (1, [found["id"]])


@tabled
def test_create__bad_field__is_named(api: APIClient, project: Project, fields: dict[str, Any], named: str) -> None:
    assert named in refused(api, body(project, **fields))["message"]


def test_create__judge_without_a_budget__is_refused(api: APIClient, project: Project) -> None:
    judge = make_evaluator(project, "judge", criteria=CRITERIA)

    assert "monthly_budget_usd" in refused(api, body(project, evaluator_id=str(judge.pk)))["message"]


@pytest.mark.parametrize(
    ("kind", "definition"), [("pairwise", {"question": "Better?"}), ("equals", {"ignore_case": True})]
)
def test_create__evaluator_that_compares__is_refused(
    api: APIClient, project: Project, kind: str, definition: dict[str, Any]
) -> None:
    evaluator = make_evaluator(project, kind, **definition)

    assert "evaluator_id" in refused(api, body(project, evaluator_id=str(evaluator.pk)))["message"]


def test_sixth_active__is_refused_until_one_is_paused(api: APIClient, project: Project) -> None:
    made = [api.post(PATH, body(project), format="json").json()["id"] for _ in range(5)]

    assert refused(api, body(project), status=409)["code"] == "too_many_online_evaluations"

    assert api.patch(f"{PATH}/{made[0]}", {"state": "paused"}, format="json").json()["state"] == "paused"
    assert api.post(PATH, body(project), format="json").status_code == 201
    resumed = api.patch(f"{PATH}/{made[0]}", {"state": "active"}, format="json")
    assert (resumed.status_code, resumed.json()["error"]["code"]) == (409, "too_many_online_evaluations")
    assert [one["id"] for one in api.get(f"{PATH}?state=paused").json()["results"]] == [made[0]]


def test_change__takes_what_is_given_and_refuses_what_does_not_fit(api: APIClient, project: Project) -> None:
    made = api.post(PATH, body(project, filter={"user_id": "ann"}), format="json").json()
    path = f"{PATH}/{made['id']}"

    changed = api.patch(path, {"rate": 0.5, "matched": True}, format="json").json()

    assert (changed["rate"], changed["matched"], changed["filter"]) == (0.5, True, {"user_id": "ann"})
    assert api.patch(path, {"filter": {"variant": "target"}}, format="json").status_code == 400
    assert api.patch(path, {"state": "deleted"}, format="json").status_code == 400


def test_label_share__is_given_changed_and_taken_away(api: APIClient, project: Project) -> None:
    made = api.post(PATH, body(project, label_share=0.2), format="json").json()
    path = f"{PATH}/{made['id']}"

    assert (made["label_share"], api.post(PATH, body(project), format="json").json()["label_share"]) == (0.2, None)
    for share in (1, None):
        assert api.patch(path, {"label_share": share}, format="json").json()["label_share"] == share
    assert api.patch(path, {"label_share": -0.1}, format="json").status_code == 400


def test_delete__is_gone_and_belongs_to_nobody_else(api: APIClient, project: Project) -> None:
    made = api.post(PATH, body(project), format="json").json()
    path = f"{PATH}/{made['id']}"
    other = client_of(make_project())

    assert [getattr(other, verb)(path).status_code for verb in ("get", "delete")] == [404, 404]
    assert other.patch(path, {"rate": 1}, format="json").status_code == 404
    assert api.delete(path).status_code == 204
    assert [getattr(api, verb)(path).status_code for verb in ("get", "delete")] == [404, 404]
    assert api.get(PATH).json()["count"] == 0
    assert EvaluationTask.objects.count() == 0
