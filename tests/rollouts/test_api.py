from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from gateway.services import replace_settings
from rollouts.evaluation.thresholds import threshold_from
from tests.factories.prompts import make_config, make_version
from tests.rollouts.conftest import PATH, Api, new_api

pytestmark = pytest.mark.django_db

STAGES = [{"weight": 10, "min_duration_minutes": 0, "min_requests": 0}, {"weight": 100}]


def active_version(api: Api) -> Any:
    return api.client.get(f"/api/llm/prompts/configs/{api.config.pk}").json()["active_version_number"]


def test_create__everything_given__201_and_every_field(api: Api) -> None:
    body = api.created(
        project_id=str(api.project.pk),
        name="shorter prompt",
        mode="auto",
        allocation_type="user_sticky",
        stages=STAGES,
        policy={"latency_p95": "hold", "cost_allowance": 0.5},
    )

    assert body == api.get(body["id"])
    assert body.pop("created_at")
    assert body.pop("created_by").startswith("key:")
    (transition,) = body.pop("transitions")
    assert (transition["action"], transition["from_status"], transition["to_status"]) == ("create", "", "pending")
    assert body == {
        "id": body["id"],
        "kind": "rollout",
        "project_id": str(api.project.pk),
        "config_id": str(api.config.pk),
        "config_name": api.config.name,
        "baseline_version_id": api.baseline,
        "baseline_version_number": 1,
        "target_version_id": api.target,
        "target_version_number": 2,
        "name": "shorter prompt",
        "mode": "auto",
        "allocation_type": "user_sticky",
        "policy": {
            "unanswered": "roll_back",
            "error_rate": "roll_back",
            "latency_p95": "hold",
            "latency_average": "hold",
            "cost_per_request": "hold",
            "contract": "roll_back",
            "truncated": "hold",
            "fallback": "hold",
            "empty": "roll_back",
            "cost_allowance": 0.5,
            "thresholds": {},
        },
        "gate": {
            "kind": "none",
            "dataset": None,
            "state": "none",
            "experiment_id": None,
            "reason": None,
            "by": None,
            "shadow": None,
        },
        "quality": [],
        "warnings": [],
        "status": "pending",
        "current_stage": None,
        "current_weight": None,
        "stages": [
            {
                "number": number,
                "weight": weight,
                "min_duration_minutes": minutes,
                "min_requests": 0,
                "settle_minutes": 0,
                "status": "pending",
                "entered_at": None,
                "left_at": None,
            }
            for number, weight, minutes in ((1, 10, 0), (2, 100, 60))
        ],
        "evaluation": None,
        "earlier_rollbacks": {"count": 0, "latest_at": None, "rollout_ids": []},
        "started_at": None,
        "stage_started_at": None,
        "ended_at": None,
    }


@pytest.mark.parametrize("action", ["roll_back", "hold", "ignore"])
def test_create__unanswered__each_action_kept(api: Api, action: str) -> None:
    assert api.created(policy={"unanswered": action})["policy"]["unanswered"] == action


def test_create__least__seven_default_stages_manual_random(api: Api) -> None:
    body = api.client.post(PATH, {"config_id": str(api.config.pk), "target_version_id": api.target}).json()
    assert [stage["weight"] for stage in body["stages"]] == [1, 5, 10, 25, 50, 75, 100]
    assert [stage["min_duration_minutes"] for stage in body["stages"]] == [30, 30, 60, 60, 120, 120, 60]
    assert [stage["min_requests"] for stage in body["stages"]] == [20, 50, 100, 200, 400, 400, 0]
    assert [stage["settle_minutes"] for stage in body["stages"]] == [4, 4, 4, 4, 4, 4, 0]
    assert (body["mode"], body["allocation_type"], body["name"]) == ("manual", "random", "Version 2")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"config_id": None}, "config_id"),
        ({"target_version_id": None}, "target_version_id"),
        ({"target_version_id": str(uuid4())}, "target_version_id"),
        ({"stages": []}, "stages"),
        ({"stages": [7]}, "stages.0"),
        ({"stages": [{}]}, "stages.0.weight"),
        ({"stages": [{"weight": 0}]}, "stages.0.weight"),
        ({"stages": [{"weight": 101}]}, "stages.0.weight"),
        ({"stages": [{"weight": True}]}, "stages.0.weight"),
        ({"stages": [{"weight": 10.0}]}, "stages.0.weight"),
        ({"stages": [{"weight": "10"}]}, "stages.0.weight"),
        ({"stages": [{"weight": 10}, {"weight": 10}]}, "stages.1.weight"),
        ({"stages": [{"weight": 10}, {"weight": 5}]}, "stages.1.weight"),
        ({"stages": [{"weight": 10, "min_requests": -1}]}, "stages.0.min_requests"),
        ({"stages": [{"weight": 10, "min_duration_minutes": 1.5}]}, "stages.0.min_duration_minutes"),
        ({"stages": [{"weight": 10, "settle_minutes": 61}]}, "stages.0.settle_minutes"),
        ({"stages": [{"weight": 10, "settle_minutes": True}]}, "stages.0.settle_minutes"),
        ({"stages": [{"weight": 10, "minutes": 5}]}, "stages.0.minutes"),
        ({"stages": [{"weight": i + 1} for i in range(51)]}, "stages"),
        ({"policy": {"unanswered": None}}, "policy.unanswered"),
        ({"policy": {"errors": "hold"}}, "policy.errors"),
        ({"policy": {"stopped": "hold"}}, "policy.stopped"),
    ],
)
def test_create__invalid__400_naming_the_field(api: Api, fields: dict[str, Any], named: str) -> None:
    response = api.create(**fields)
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["type"], list(error["details"])) == ("invalid_request_error", [named])
    assert error["message"].startswith(named)


def test_create__target_is_the_baseline_or_another_configs__400(api: Api) -> None:
    other = make_config(api.project, versions=1).versions.get()
    for version_id in (api.baseline, str(other.pk)):
        response = api.create(target_version_id=version_id)
        assert response.status_code == 400
        assert list(response.json()["error"]["details"]) == ["target_version_id"]


def test_create__config_without_versions__400(api: Api) -> None:
    response = api.create(config_id=str(make_config(api.project).pk))
    assert response.status_code == 400
    assert list(response.json()["error"]["details"]) == ["config_id"]


def test_create__unknown_or_another_projects_config__404(api: Api) -> None:
    foreign = new_api()
    for config_id in (str(uuid4()), str(foreign.config.pk)):
        assert api.create(config_id=config_id).status_code == 404


def test_create__one_is_active__409_until_it_ended(api: Api) -> None:
    first = api.created()
    response = api.create()
    assert (response.status_code, response.json()["error"]["code"]) == (409, "rollout_active")
    assert api.move(first["id"], "rollback").status_code == 200
    assert api.create().status_code == 201


def test_moves__start_pause_start_promote__as_specified(api: Api) -> None:
    rollout_id = api.created(stages=STAGES)["id"]

    started = api.move(rollout_id, "start", reason="go").json()
    assert (started["status"], started["current_stage"], started["current_weight"]) == ("running", 1, 10)
    assert started["started_at"] == started["stage_started_at"] == started["stages"][0]["entered_at"]
    assert api.move(rollout_id, "pause").json()["status"] == "paused"
    again = api.move(rollout_id, "start").json()
    assert (again["status"], again["started_at"]) == ("running", started["started_at"])
    promoted = api.move(rollout_id, "promote", from_stage=1).json()
    assert (promoted["status"], promoted["current_stage"], promoted["current_weight"]) == ("running", 2, 100)
    assert [stage["status"] for stage in promoted["stages"]] == ["completed", "active"]
    assert active_version(api) == 1
    ended = api.move(rollout_id, "promote").json()
    assert ended["status"] == "completed"
    assert ended["ended_at"]
    assert active_version(api) == 2
    assert [move["action"] for move in ended["transitions"]] == [
        "create", "start", "pause", "start", "promote", "promote",
    ]  # fmt: skip
    assert ended["transitions"][1]["reason"] == "go"
    assert all(move["actor"].startswith("key:") for move in ended["transitions"])


@pytest.mark.parametrize(
    ("move", "status", "stages", "version"),
    [
        ("rollback", "rolled_back", ["rolled_back", "skipped"], 1),
        ("complete", "completed", ["completed", "skipped"], 2),
    ],
)
def test_end__at_the_first_stage__stages_and_the_config_say_so(
    api: Api, move: str, status: str, stages: list[str], version: int
) -> None:
    rollout_id = api.created(stages=STAGES)["id"]
    api.move(rollout_id, "start")
    ended = api.move(rollout_id, move, reason="slow").json()
    assert (ended["status"], [stage["status"] for stage in ended["stages"]]) == (status, stages)
    config = api.client.get(f"/api/llm/prompts/configs/{api.config.pk}").json()
    assert (config["active_version_number"], config["has_active_rollout"]) == (version, False)


def test_earlier_rollbacks__same_version_again__listed_with_time_and_id(api: Api) -> None:
    called_off = api.created()["id"]
    api.move(called_off, "rollback")
    rolled_back = []
    for _ in range(2):
        rolled_back.append(api.created()["id"])
        api.move(rolled_back[-1], "start")
        api.move(rolled_back[-1], "rollback")

    again = api.created()

    assert again["earlier_rollbacks"] == {
        "count": 2,
        "latest_at": api.get(rolled_back[1])["ended_at"],
        "rollout_ids": [rolled_back[1], rolled_back[0]],
    }
    listed = {row["id"]: row["earlier_rollbacks"]["count"] for row in api.client.get(PATH).json()["results"]}
    assert listed == {again["id"]: 2, rolled_back[1]: 1, rolled_back[0]: 0, called_off: 0}


def test_earlier_rollbacks__another_version__none(api: Api) -> None:
    first = api.created()["id"]
    api.move(first, "start")
    api.move(first, "rollback")
    third = make_version(api.config)
    assert api.created(target_version_id=str(third.pk))["earlier_rollbacks"]["count"] == 0


MOVES = ("start", "pause", "promote", "rollback", "complete")
REACHED = {
    "pending": (),
    "running": ("start",),
    "paused": ("start", "pause"),
    "completed": ("complete",),
    "rolled_back": ("rollback",),
}
ALLOWED = {
    "pending": {"start": "running", "rollback": "rolled_back", "complete": "completed"},
    "running": {"pause": "paused", "promote": "running", "rollback": "rolled_back", "complete": "completed"},
    "paused": {"start": "running", "promote": "paused", "rollback": "rolled_back", "complete": "completed"},
    "completed": {},
    "rolled_back": {},
}


@pytest.mark.parametrize("status", REACHED)
@pytest.mark.parametrize("move", MOVES)
def test_move__each_from_each_status__allowed_or_409(api: Api, status: str, move: str) -> None:
    rollout_id = api.created(stages=STAGES)["id"]
    for step in REACHED[status]:
        assert api.move(rollout_id, step).status_code == 200
    before = api.get(rollout_id)
    assert before["status"] == status

    response = api.move(rollout_id, move)

    if move in ALLOWED[status]:
        found = response.json()
        assert (response.status_code, found["status"]) == (200, ALLOWED[status][move])
        moves_on = move == "promote" or (status, move) == ("pending", "start")
        assert (found["current_stage"] or 0) == (before["current_stage"] or 0) + moves_on
    else:
        error = response.json()["error"]
        assert (response.status_code, error["type"]) == (409, "conflict_error")
        assert (error["code"], status.replace("_", " ") in error["message"].replace("_", " ")) == (
            "transition_refused",
            True,
        )
        assert api.get(rollout_id) == before


def test_promote__from_another_stage__409(api: Api) -> None:
    rollout_id = api.created()["id"]
    api.move(rollout_id, "start")
    response = api.move(rollout_id, "promote", from_stage=2)
    assert (response.status_code, response.json()["error"]["code"]) == (409, "rollout_moved")
    assert api.get(rollout_id)["current_stage"] == 1


def test_list__filters_and_pages__newest_first(api: Api, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    other = make_config(api.project, versions=2)
    newest = str(other.versions.get(number=2).pk)
    first = api.created()
    api.move(first["id"], "rollback")
    second = api.created(mode="auto")
    third = api.created(config_id=str(other.pk), target_version_id=newest)
    api.move(third["id"], "start")

    def listed(**query: Any) -> list[str]:
        return [row["id"] for row in api.client.get(PATH, query).json()["results"]]

    assert listed() == [third["id"], second["id"], first["id"]]
    assert listed(config_id=str(api.config.pk)) == [second["id"], first["id"]]
    assert listed(status="running") == [third["id"]]
    assert listed(status="rolled_back", config_id=str(api.config.pk)) == [first["id"]]
    assert listed(mode="auto") == [second["id"]]
    assert listed(limit=1, offset=1) == [second["id"]]
    api.client.get(PATH)
    with django_assert_num_queries(6):  # The queries are: key, count, rows, stages, earlier rollbacks, first moves.
        body = api.client.get(PATH).json()
    assert body["count"] == 3
    assert "transitions" not in body["results"][0]


def test_create__thresholds__kept_and_each_wrong_one_named(api: Api) -> None:
    thresholds = {"unanswered": {"fail_from": 0.001, "margin": 0.002}, "cost_per_request": {"margin": 1.5}}
    body = api.created(policy={"thresholds": thresholds})
    assert body["policy"]["thresholds"] == {
        "unanswered": {"fail_from": 0.001, "margin": 0.002},
        "cost_per_request": {"fail_from": None, "margin": 1.5},
    }
    for name, given, field in (
        ("unanswered", {"fail_from": 0.00001}, "fail_from"),
        ("error_rate", {"fail_from": 0.02}, "margin"),
        ("latency_p95", {"margin": 1.1}, "margin"),
        ("latency_average", {"margin": 2}, "margin"),
    ):
        response = api.create(policy={"thresholds": {name: given}})
        assert list(response.json()["error"]["details"]) == [f"policy.thresholds.{name}.{field}"]


def test_create__thresholds_of_the_project__for_metrics_without_one_of_the_rollout(api: Api) -> None:
    values = {"rollout_thresholds": ["unanswered 0.001 0.002", "latency_p95 - 1.5"]}
    replace_settings(project_id=api.project.pk, values=values, actor="test")
    body = api.created(policy={"thresholds": {"unanswered": {"margin": 0.1}}})
    assert body["policy"]["thresholds"] == {
        "unanswered": {"fail_from": None, "margin": 0.1},
        "latency_p95": {"fail_from": None, "margin": 1.5},
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("unanswered", "must be a metric, what it may fail from and what it passes below"),
        ("stopped 0.1 0.1", "A metric is one of"),
        ("unanswered 2 3", "each is from 0.001 to 0.5"),
        ("unanswered a b", "stands for what is usual"),
        ("unanswered 0.1 -", "the second must be at least its fail_from"),
    ],
)
def test_threshold__line_of_a_project__says_what_is_wrong(line: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        threshold_from(line)
