from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from pytest_django import Settings

from agent.tools import registry
from agent.tools.base import ToolContext
from analytics.clickhouse import client
from analytics.errors import AnalyticsLimitError
from core.models import Project
from tests.agent.tools.calls import calls
from tests.agent.tools.world import World

# These tools read the SQL database or Redis alone.
_WITHOUT_LOG = {
    "get_project", "get_gateway_settings", "list_integrations", "list_scores", "list_session_feedback",
    "list_prompt_configs", "get_prompt_config", "list_prompt_versions", "get_prompt_version", "diff_prompt_versions",
    "list_prompt_activations", "list_prompt_labels", "list_prompt_label_moves",
    "list_rollouts", "get_rollout", "list_models", "list_prices", "get_price",
    "list_model_groups", "list_teams",
    "get_provider_latency", "list_problems", "list_review_queues", "get_review_agreement",
    "list_evaluators", "get_evaluator", "get_evaluator_calibration",
    "list_online_evaluations", "get_online_evaluation",
    "list_datasets", "list_dataset_items",
    # An estimate of hand-written items: past requests are in the log.
    "list_experiments", "get_experiment", "list_experiment_items", "estimate_experiment",
}  # fmt: skip


@pytest.fixture
def away(world: World, settings: Settings) -> World:
    client.close()
    settings.CLICKHOUSE_URL = "clickhouse://127.0.0.1:1/default"
    return world


def test_every_tool__clickhouse_away__fails_or_answers_without_it(away: World) -> None:
    codes = {name: _code(away, name, arguments) for name, arguments in calls(away).items()}

    assert {name for name, code in codes.items() if code is None} == _WITHOUT_LOG
    assert {code for code in codes.values() if code} == {"analytics_unavailable"}


def test_tool__query_above_its_limits__error_suggests_a_narrower_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AnalyticsLimitError("The query takes longer than is allowed. Narrow its range.")

    monkeypatch.setattr(client, "query", refuse)
    outcome = world.call("list_requests")

    assert outcome.is_error
    assert json.loads(outcome.content)["error"] == {
        "type": "service_unavailable_error",
        "code": "analytics_limit",
        "message": "The query takes longer than is allowed. Narrow its range.",
    }


def test_tool__database_away__error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OperationalError("connection to 10.0.0.7 failed for user secret")

    monkeypatch.setattr(Project.objects, "filter", refuse)
    outcome = world.call("get_project")

    assert json.loads(outcome.content)["error"]["code"] == "service_unavailable"
    assert "secret" not in outcome.content


def test_tool__about_what_is_not_there__says_so_by_its_code(world: World) -> None:
    assert _code(world, "get_user_spend", {"user_id": "nobody"}) == "user_not_found"
    gone = ToolContext(uuid4(), world.context.granted, world.now)
    assert json.loads(registry.call(gone, "get_project", "").content)["error"]["code"] == "project_not_found"


def test_provider_latency__redis_away__error(world: World, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    assert _code(world, "get_provider_latency", {}) == "health_unavailable"


def test_budget_status__redis_away__from_the_request_log(world: World, settings: Settings) -> None:
    known = world.ask("get_budget_status")["month"]["spent_usd"]
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    assert world.ask("get_budget_status")["month"]["spent_usd"] == known > 0


def test_every_tool__in_a_transaction_that_only_reads__succeeds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The databases themselves refuse any write; for ClickHouse only the client's reading function is left."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a tool writes to ClickHouse")

    with monkeypatch.context() as patched, _reading_only():
        patched.setattr(client, "insert", refuse)
        patched.setattr(client, "execute", refuse)
        for name, arguments in calls(world).items():
            assert _code(world, name, arguments) is None, name


@contextmanager
def _reading_only() -> Iterator[None]:
    is_sqlite = connection.vendor == "sqlite"
    # The constraints of the test's own rows are checked before, because PostgreSQL locks rows to check them.
    before = ["PRAGMA query_only = ON"] if is_sqlite else ["SET CONSTRAINTS ALL IMMEDIATE", "SET TRANSACTION READ ONLY"]
    with connection.cursor() as cursor:
        for statement in before:
            cursor.execute(statement)
        with pytest.raises(DatabaseError), transaction.atomic():
            Project.objects.update(name="changed")
        yield
        if is_sqlite:
            cursor.execute("PRAGMA query_only = OFF")


def _code(world: World, name: str, arguments: dict[str, Any]) -> str | None:
    outcome = world.call(name, arguments)
    return str(json.loads(outcome.content)["error"]["code"]) if outcome.is_error else None
