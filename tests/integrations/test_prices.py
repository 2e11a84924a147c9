from __future__ import annotations

from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from integrations.models import ModelPrice
from integrations.price_services import store_prices
from integrations.pricing.cost import Price
from integrations.pricing.entries import PriceEntry
from integrations.selectors import price_table
from integrations.services import load_shipped_prices
from integrations.signals import prices_changed

pytestmark = pytest.mark.django_db

ENTRY = PriceEntry("openai", "gpt-4o", Decimal("2.5"), Decimal("10"), Decimal("1.25"))


def test_load_shipped_prices__twice__second_changes_nothing() -> None:
    first = load_shipped_prices()
    assert first.added == ModelPrice.objects.count() > 1000
    second = load_shipped_prices()
    assert (second.added, second.updated, second.skipped) == (0, 0, first.added)
    assert price_table()["openai", "gpt-4o"] == Price(Decimal("2.5"), Decimal("10"), Decimal("1.25"))


def test_load_prices__command__tells_what_it_did() -> None:
    out = StringIO()
    call_command("load_prices", stdout=out)
    assert out.getvalue().startswith("added ")


def test_store_prices__manual_price__untouched() -> None:
    ModelPrice.objects.create(
        provider="openai", model="gpt-4o", input_cost_per_1m=Decimal(1), output_cost_per_1m=Decimal(1), source="manual"
    )
    stored = store_prices([("catalog_a", ENTRY)])
    assert (stored.added, stored.updated, stored.skipped) == (0, 0, 1)
    assert price_table()["openai", "gpt-4o"].input == 1


def test_store_prices__changed_price__updated_and_announced(django_capture_on_commit_callbacks: Any) -> None:
    store_prices([("catalog_b", ENTRY)])
    heard: list[object] = []

    def listen(**arguments: object) -> None:
        heard.append(arguments["sender"])

    prices_changed.connect(listen)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            stored = store_prices(
                [("catalog_a", ENTRY), ("catalog_b", PriceEntry("openai", "gpt-4o", ENTRY.input, ENTRY.output))]
            )
        with django_capture_on_commit_callbacks(execute=True):
            store_prices([("catalog_a", ENTRY)])
    finally:
        prices_changed.disconnect(listen)
    assert (stored.added, stored.updated) == (0, 1)
    row = ModelPrice.objects.get()
    assert (row.source, row.cache_read_cost_per_1m) == ("catalog_a", Decimal("1.25"))
    assert heard == [ModelPrice]


def test_price_table__unknown_input_or_output__left_out() -> None:
    ModelPrice.objects.create(provider="openai", model="half", input_cost_per_1m=Decimal(1))
    assert price_table() == {}
