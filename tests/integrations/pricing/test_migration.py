"""Tests that the migration makes existing prices the beginning of the price history."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from integrations.models import CatalogPrice, ModelPrice, PricePeriod
from integrations.pricing.services import load_shipped_prices

pytestmark = pytest.mark.django_db(transaction=True)


def migrate(name: str) -> Any:
    """Migrates to the named migration and returns the apps of that state."""
    return MigrationExecutor(connection).migrate([("integrations", name)]).apps


@pytest.fixture
def before() -> Iterator[Any]:
    yield migrate("0001_integrations_and_prices")
    # All apps are migrated, since going back also reverted those that depend on this one.
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def test_migration__existing_prices__get_a_period_and_keep_their_values(before: Any) -> None:
    old = before.get_model("integrations", "ModelPrice")
    costs = {"input_cost_per_1m": Decimal(1), "output_cost_per_1m": Decimal(2)}
    old.objects.create(provider="openai", model="gpt-4o", source="catalog_a", **costs)
    old.objects.create(provider="openai", model="own", source="manual", **costs)

    migrate("0006_price_terms")

    assert set(PricePeriod.objects.values_list("model", "source", "changed_by", "valid_until")) == {
        ("gpt-4o", "catalog_a", "unknown", None),
        ("own", "manual", "unknown", None),
    }
    assert [period.valid_from for period in PricePeriod.objects.order_by("model")] == list(
        ModelPrice.objects.order_by("model").values_list("updated_at", flat=True)
    )
    assert CatalogPrice.objects.get().model == "gpt-4o"
    assert load_shipped_prices().updated == 1
    assert PricePeriod.objects.filter(model="gpt-4o", provider="openai").count() == 2
    assert ModelPrice.objects.get(model="own").source == "manual"
