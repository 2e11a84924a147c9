from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.tools import registry
from gateway.protocol.model_prefixes import model_prefixes
from tests.agent.tools.world import World, lasting

LLM = "/api/llm"
_TODAY = datetime.now(UTC).date()
# The range includes tomorrow, in case a day ends during the tests.
DATES: dict[str, Any] = {"start_date": str(_TODAY - timedelta(days=6)), "end_date": str(_TODAY + timedelta(days=1))}


def _project(world: World) -> None:
    found = world.ask("get_project")
    settings = world.get(f"{LLM}/settings")
    keys = world.get(f"{LLM}/keys")["results"]
    assert (found["id"], found["name"]) == (str(world.project.pk), world.project.name)
    assert found["api_key_count"] == len(keys)
    assert found["enabled_providers"] == [item["provider"] for item in _integrations(world) if item["enabled"]]
    assert found["budgets"] == {name: settings[name] for name in found["budgets"]}
    assert found["budgets"]["monthly_budget_usd"] == 100.0


def _settings(world: World) -> None:
    expected = world.get(f"{LLM}/settings")
    shortened = {"alert_webhook_url": "https://hooks.example/…", "alert_emails": ["…@umber.example"]}
    assert world.ask("get_gateway_settings") == {**expected, **shortened}


def _list_integrations(world: World) -> None:
    found = world.ask("list_integrations")
    assert found["count"] == 1
    expected = {name: value for name, value in _integrations(world)[0].items() if "key" not in name}
    assert found["results"] == [{**expected, "base_url": "https://umber.example/…"}]


def _integrations(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.get(f"{LLM}/integrations")["results"]
    return found


def _same_list(
    tool: str, path: str, *, query: dict[str, Any] | None = None, **arguments: Any
) -> Callable[[World], None]:
    def check(world: World) -> None:
        given = {name: value(world) if callable(value) else value for name, value in arguments.items()}
        parameters = given if query is None else {n: v(world) if callable(v) else v for n, v in query.items()}
        expected = world.get(path.format(world=world), **{"limit": 2, **parameters})
        found = world.ask(tool, limit=2, **given)
        del expected["next"], expected["previous"]
        for shown in (expected, found):
            # It begins as long before the range as the part of the range that is over by now.
            shown.get("range_before", {}).pop("start_date", None)
        assert {name: found[name] for name in expected} == expected
        assert expected["results"]
        assert found["next_offset"] == (2 if expected["count"] > 2 else None)

    return check


def _review_agreement(world: World) -> None:
    found = world.ask("get_review_agreement", queue_id=world.queue_id)
    assert found == world.get(f"{LLM}/reviews/{world.queue_id}/agreement")
    assert found["score_name"] == f"{world.marker}-score"


def _same(tool: str, path: str, **arguments: Any) -> Callable[[World], None]:
    def check(world: World) -> None:
        given = {name: value(world) if callable(value) else value for name, value in arguments.items()}
        expected = world.get(path.format(world=world), **{name: text for name, text in given.items() if name in DATES})
        found = world.ask(tool, **given)
        assert {name: found[name] for name in expected} == expected

    return check


def _search(world: World) -> None:
    expected = world.api.post(f"{LLM}/search", {"query": "refunds", "limit": 3}, format="json").json()
    found = world.ask("search_requests", query="refunds", limit=3)
    assert {name: found[name] for name in expected} == expected
    assert expected["count"] == 3
    assert found["left_out_asked_by_agent"] == 0


def _request(world: World) -> None:
    expected = world.get(f"{LLM}/requests/{world.request_ids[0]}")
    assert world.ask("get_request", request_id=world.request_ids[0]) == expected
    assert expected["scores"] and "refunds" in str(expected["request"])
    without = world.ask("get_request", request_id=world.request_ids[0], include_bodies=False)
    assert without == {name: value for name, value in expected.items() if name not in ("request", "response")}


def _diff(world: World) -> None:
    first, _, last = world.version_ids
    expected = world.get(f"{LLM}/prompts/configs/{world.config.pk}/versions/{first}/diff/{last}")
    found = world.ask("diff_prompt_versions", config=world.config.name, from_version="1", to_version=str(last))
    assert found.pop("unchanged_lines_left_out") == 0
    assert found == expected


def _rollout(world: World) -> None:
    expected = world.get(f"{LLM}/prompts/rollouts/{world.rollout.pk}")
    found = world.ask("get_rollout", rollout_id=str(world.rollout.pk))
    assert {**found, "transitions": None} == {**expected, "transitions": None}
    assert [item["action"] for item in found["transitions"]] == [item["action"] for item in expected["transitions"]]


def _models(world: World) -> None:
    expected = model_prefixes({"openai"})
    found, enabled = world.ask("list_models", limit=100, enabled_only=False), world.ask("list_models", limit=100)
    assert found["results"] == expected[:100]
    assert found["count"] == len(expected)
    assert enabled["results"] == [item for item in expected if item["enabled"]] != []


def _price(world: World) -> None:
    expected = world.get(f"{LLM}/pricing/openai/{world.model}")
    assert world.ask("get_price", provider="openai", model=world.model) == expected
    assert expected["source"] == "manual"


def _latency(world: World) -> None:
    expected, found = world.get(f"{LLM}/metrics/provider-latency"), world.ask("get_provider_latency")
    assert {**found, "generated_at": None} == {**expected, "generated_at": None}
    assert [item["provider"] for item in found["providers"]] == ["openai"]


def _problems(world: World) -> None:
    expected, found = world.get(f"{LLM}/problems", **DATES), world.ask("list_problems", **DATES)
    assert lasting(found) == lasting(expected)


def _telemetry(kind: str) -> Callable[[World], None]:
    def check(world: World) -> None:
        path = f"/api/projects/{world.project.pk}/llm/sessions/{world.session_id}/telemetry"
        expected = world.get(path)[kind]
        found = world.ask(f"list_session_{kind}", session_id=world.session_id)
        assert (found["count"], found["results"]) == (len(expected), expected)
        failed = world.ask(f"list_session_{kind}", session_id=world.session_id, errors_only=True)
        assert 0 < failed["count"] < found["count"]

    return check


def _daily_costs(world: World) -> None:
    _same_list("list_daily_costs", f"{LLM}/metrics/cost/daily", **DATES)(world)
    total = world.get(f"{LLM}/metrics/cost/by-model", **DATES)["total_cost_usd"]
    assert world.ask("list_daily_costs", limit=1, **DATES)["total_cost_usd"] == total > 0


def _budgets(world: World) -> None:
    expected, found = world.get(f"{LLM}/usage")["month"], world.ask("get_budget_status")
    now = {name: found["month"].pop(name) for name in ("forecast_usd",)}
    assert found["month"] == {name: expected[name] for name in found["month"]}
    assert found["forecasts"][0]["forecast_usd"] == now["forecast_usd"] >= found["month"]["spent_usd"] > 0
    assert found["forecasts"][1]["forecast_usd"] >= found["month"]["spent_usd"]
    assert found["session_budget_usd"] == 5.0


def _session_spend(world: World) -> None:
    expected = world.get(f"{LLM}/usage", session_id=world.session_id)["session"]
    assert world.ask("get_session_spend", session_id=world.session_id) == expected
    assert expected["spent_usd"] == world.get(f"{LLM}/sessions/{world.session_id}")["total_cost_usd"] > 0


def _user_spend(world: World) -> None:
    expected = world.get(f"{LLM}/metrics/users", **DATES)["results"][0]
    found = world.ask("get_user_spend", user_id="umber-user", **DATES)
    assert {name: value for name, value in found.items() if name not in DATES} == {
        name: expected[name] for name in found if name not in DATES
    }
    assert found["total_cost_usd"] > 0


def _experiment(world: World) -> None:
    expected = world.get(f"{LLM}/experiments/{world.experiment_id}")
    found = world.ask("get_experiment", experiment_id=world.experiment_id)
    # The report has the scores of each evaluator already.
    summary = [{name: value for name, value in one.items() if name != "scores"} for one in expected["summary"]]
    assert found == {**expected, "summary": summary}
    (target,) = found["report"]["targets"]
    assert (target["label"], target["verdict"], found["verdict"]) == ("B", "undecided", "undecided")
    assert [one["position"] for one in target["worst_items"]] == [2]


def _estimate(world: World) -> None:
    candidates = [{"version_id": str(identity)} for identity in world.version_ids[:2]]
    of_dataset = {"candidates": candidates, "dataset_id": world.dataset_id, "repeats": 2}
    filters = {"prompt_config_id": str(world.config.pk), "prompt_version": 1, **DATES}
    of_requests = {"candidates": [{}, {"model": world.model, "temperature": 0.5}], "order": "random"}
    for given, more, body in (
        (of_dataset, {}, of_dataset),
        (of_requests, filters, {**of_requests, "filter": filters}),
    ):
        expected = world.api.post(f"{LLM}/experiments/estimate", body, format="json")
        assert expected.status_code == 200, expected.content
        assert world.ask("estimate_experiment", **given, **more) == expected.json()
        assert expected.json()["answer_count"] > 0


def _dataset_id(world: World) -> str:
    return world.dataset_id


def _session_id(world: World) -> str:
    return world.session_id


def _evaluator_id(world: World) -> str:
    return world.evaluator_id


def _experiment_id(world: World) -> str:
    return world.experiment_id


def _config(world: World) -> str:
    return world.config.name


def _active(world: World) -> str:
    return str(world.version_ids[0])


_CONFIG = f"{LLM}/prompts/configs/{{world.config.pk}}"
CHECKS: dict[str, Callable[[World], None]] = {
    "get_project": _project,
    "get_gateway_settings": _settings,
    "list_integrations": _list_integrations,
    "list_model_groups": _same_list("list_model_groups", f"{LLM}/model-groups"),
    "list_sessions": _same_list(
        "list_sessions", f"{LLM}/sessions", name_pattern="umber-%", user_id="umber-user", **DATES
    ),
    "get_session": _same("get_session", f"{LLM}/sessions/{{world.session_id}}", session_id=_session_id),
    "list_session_requests": _same_list(
        "list_session_requests", f"{LLM}/sessions/{{world.session_id}}/requests", query={}, session_id=_session_id
    ),
    "list_requests": _same_list(
        "list_requests",
        f"{LLM}/requests",
        outcome="error",
        operation="chat",
        min_latency_ms=150,
        min_cost_usd=0.1,
        **DATES,
    ),
    "get_request": _request,
    "search_requests": _search,
    "list_scores": _same_list("list_scores", f"{LLM}/scores", score_type="number", evaluator_type="human", **DATES),
    "get_score_metrics": _same_list("get_score_metrics", f"{LLM}/metrics/scores", group_by="model", **DATES),
    "list_session_feedback": _same_list(
        "list_session_feedback", f"{LLM}/sessions/{{world.session_id}}/feedback", query={}, session_id=_session_id
    ),
    "get_feedback_metrics": _same_list("get_feedback_metrics", f"{LLM}/metrics/feedback", **DATES),
    "list_bad_ratings": _same_list("list_bad_ratings", f"{LLM}/metrics/bad-ratings", **DATES),
    "list_review_queues": _same_list("list_review_queues", f"{LLM}/reviews", state="open"),
    "get_review_agreement": _review_agreement,
    "list_evaluators": _same_list("list_evaluators", f"{LLM}/evaluators", state="active", kind="contains"),
    "get_evaluator": _same("get_evaluator", f"{LLM}/evaluators/{{world.evaluator_id}}", evaluator_id=_evaluator_id),
    "get_evaluator_calibration": _same(
        "get_evaluator_calibration",
        f"{LLM}/evaluators/{{world.evaluator_id}}/calibration",
        evaluator_id=_evaluator_id,
    ),
    "list_online_evaluations": _same_list(
        "list_online_evaluations", f"{LLM}/online-evaluations", state="active", evaluator_id=_evaluator_id
    ),
    "get_online_evaluation": _same(
        "get_online_evaluation",
        f"{LLM}/online-evaluations/{{world.evaluation_id}}",
        evaluation_id=lambda world: world.evaluation_id,
    ),
    "list_datasets": _same_list("list_datasets", f"{LLM}/datasets"),
    "list_dataset_items": _same_list(
        "list_dataset_items", f"{LLM}/datasets/{{world.dataset_id}}/items", query={}, dataset_id=_dataset_id
    ),
    "list_experiments": _same_list(
        "list_experiments", f"{LLM}/experiments", state="completed", verdict="undecided", dataset_id=_dataset_id
    ),
    "get_experiment": _experiment,
    "list_experiment_items": _same_list(
        "list_experiment_items",
        f"{LLM}/experiments/{{world.experiment_id}}/items",
        query={},
        experiment_id=_experiment_id,
    ),
    "estimate_experiment": _estimate,
    "list_prompt_configs": _same_list("list_prompt_configs", f"{LLM}/prompts/configs", search="UMBER"),
    "get_prompt_config": _same("get_prompt_config", _CONFIG, config=_config),
    "list_prompt_versions": _same_list(
        "list_prompt_versions", f"{_CONFIG}/versions", query={"search": "words"}, config=_config, search="words"
    ),
    "get_prompt_version": _same("get_prompt_version", f"{_CONFIG}/versions/{{world.version_ids[0]}}", config=_config),
    "diff_prompt_versions": _diff,
    "list_prompt_activations": _same_list(
        "list_prompt_activations", f"{_CONFIG}/activations", query={}, config=_config
    ),
    "list_prompt_labels": _same_list("list_prompt_labels", f"{_CONFIG}/labels", query={}, config=_config),
    "list_prompt_label_moves": _same_list(
        "list_prompt_label_moves",
        f"{_CONFIG}/label-moves",
        query={"label": "production"},
        config=_config,
        label="production",
    ),
    "list_rollouts": _same_list("list_rollouts", f"{LLM}/prompts/rollouts", status="running", mode="manual"),
    "get_rollout": _rollout,
    "get_rollout_metrics": _same(
        "get_rollout_metrics",
        f"{LLM}/prompts/rollouts/{{world.rollout.pk}}/metrics",
        rollout_id=lambda world: str(world.rollout.pk),
    ),
    "list_models": _models,
    "list_prices": _same_list("list_prices", f"{LLM}/pricing", search="umber", source="manual"),
    "get_price": _price,
    "get_metrics_overview": _same("get_metrics_overview", f"{LLM}/metrics/overview", operation="chat", **DATES),
    "list_user_metrics": _same_list("list_user_metrics", f"{LLM}/metrics/users", **DATES),
    "list_model_metrics": _same_list("list_model_metrics", f"{LLM}/metrics/models", **DATES),
    "list_usage_metrics": _same_list("list_usage_metrics", f"{LLM}/metrics/usage", interval="day", **DATES),
    "get_error_breakdown": _same_list("get_error_breakdown", f"{LLM}/metrics/errors", **DATES),
    "list_error_groups": _same_list("list_error_groups", f"{LLM}/metrics/errors/groups", **DATES),
    "get_provider_latency": _latency,
    "list_problems": _problems,
    "list_session_spans": _telemetry("spans"),
    "list_session_logs": _telemetry("logs"),
    "list_daily_costs": _daily_costs,
    "list_teams": _same_list("list_teams", f"{LLM}/teams", query={}),
    "list_team_costs": _same_list(
        "list_team_costs", f"{LLM}/metrics/cost", query={"group_by": "team", **DATES}, **DATES
    ),
    "list_prompt_caches": _same_list("list_prompt_caches", f"{LLM}/metrics/prompt-cache", **DATES),
    "list_model_costs": _same_list("list_model_costs", f"{LLM}/metrics/cost/by-model", **DATES),
    "get_budget_status": _budgets,
    "get_session_spend": _session_spend,
    "get_user_spend": _user_spend,
}


@pytest.fixture
def world(kept_world: World, db: None) -> World:
    return kept_world


def test_checks__every_tool__has_one() -> None:
    assert set(CHECKS) == {tool.name for tool in registry.ALL}


@pytest.mark.parametrize("name", CHECKS)
def test_tool__same_question__same_answer_as_the_management_api(world: World, name: str) -> None:
    CHECKS[name](world)


@pytest.mark.parametrize("number", [1, "1"])
def test_version__by_its_number__is_taken_as_a_number_and_as_a_text(world: World, number: Any) -> None:
    text = world.ask("get_prompt_version", config=world.config.name, version="1")

    assert world.ask("get_prompt_version", config=world.config.name, version=number) == text
    assert world.ask("diff_prompt_versions", config=world.config.name, from_version=number, to_version=2) == world.ask(
        "diff_prompt_versions", config=world.config.name, from_version="1", to_version="2"
    )


def test_sessions__in_another_order__the_first_of_the_management_api(world: World) -> None:
    order: dict[str, Any] = {"sort": "-total_tokens", "limit": 2, **DATES}

    found = world.ask("list_sessions", **order)

    assert found["results"] == world.get(f"{LLM}/sessions", **order)["results"] != []
    assert found["next_offset"] is None
