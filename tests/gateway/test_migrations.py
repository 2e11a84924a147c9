"""The migrations of the gateway's tables, over rows that were stored before."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from analytics.identifiers import id_hash
from gateway.models import ExperimentItem
from gateway.project_settings.settings import ProjectSettings
from tests.factories.core import make_project


@pytest.fixture
def at_first_migration(transactional_db: None) -> Iterator[Any]:
    """Yields the models of the first migration, in a database that is migrated back to it and forward in the end."""
    executor = MigrationExecutor(connection)
    executor.migrate([("gateway", "0001_initial")])
    yield executor.loader.project_state([("gateway", "0001_initial")]).apps
    later = MigrationExecutor(connection)
    later.migrate(later.loader.graph.leaf_nodes("gateway"))


def test_settings__stored_in_columns__are_the_same_in_one_column_and_back(at_first_migration: Any) -> None:
    project = make_project()
    row = at_first_migration.get_model("gateway", "GatewaySettings")(project_id=project.pk)
    row.retry_max_attempts, row.monthly_budget_usd, row.judge_model = 3, Decimal("12.50"), "openai/gpt-4o"
    row.save()

    executor = MigrationExecutor(connection)
    executor.migrate([("gateway", "0002_settings_as_values")])

    stored = executor.loader.project_state([("gateway", "0002_settings_as_values")]).apps
    values = stored.get_model("gateway", "GatewaySettings").objects.get(project_id=project.pk).values
    assert (values["retry_max_attempts"], values["monthly_budget_usd"]) == (3, "12.5")
    assert values["judge_model"] == "openai/gpt-4o"
    assert set(values) <= set(ProjectSettings.__struct_fields__)  # Later settings never had a column.

    MigrationExecutor(connection).migrate([("gateway", "0001_initial")])

    back = at_first_migration.get_model("gateway", "GatewaySettings").objects.get(project_id=project.pk)
    assert (back.retry_max_attempts, back.monthly_budget_usd, back.judge_model) == (
        3,
        Decimal("12.50"),
        "openai/gpt-4o",
    )


def test_experiment_items__made_before_hashes__have_that_of_their_request(transactional_db: None) -> None:
    before, after = [("gateway", "0009_answer_failures")], [("gateway", "0010_gone_experiment_items")]
    executor = MigrationExecutor(connection)
    executor.migrate(before)
    old = executor.loader.project_state(before).apps
    experiment = old.get_model("gateway", "Experiment").objects.create(project_id=make_project().pk, item_limit=1)
    items = old.get_model("gateway", "ExperimentItem").objects
    request_id = uuid4()
    items.create(experiment=experiment, position=1, request_id=request_id)
    items.create(experiment=experiment, position=2)

    MigrationExecutor(connection).migrate(after)

    later = MigrationExecutor(connection)
    later.migrate(later.loader.graph.leaf_nodes("gateway"))
    rows = ExperimentItem.objects.order_by("position").values_list("request_hash", "gone")
    assert list(rows) == [(id_hash(str(request_id)), ""), ("", "")]
