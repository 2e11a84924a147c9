"""Tests simultaneous changes of prices, each on a connection of its own."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import pairwise
from threading import Barrier
from typing import Any

import pytest

from core.errors import ApplicationError
from integrations.models import ModelPrice, PricePeriod, PriceSyncLog
from integrations.pricing.services import load_shipped_prices, remove_price, set_price
from integrations.pricing.sync import sync_prices
from tests.at_once import at_once
from tests.factories.core import make_project
from tests.integrations.pricing.catalog_server import CatalogServer
from tests.integrations.pricing.catalogs import catalog_b, model_a
from tests.waiting import TIMEOUT_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)

CALLERS = 6


def costs(amount: int) -> dict[str, Decimal]:
    return {"input_cost_per_1m": Decimal(amount), "output_cost_per_1m": Decimal(amount)}


def assert_periods_meet() -> None:
    """Asserts that each price that applies has one open period, and that each period ends where the next begins."""
    rows = list(PricePeriod.objects.order_by("valid_from", "pk"))
    assert [row.valid_until is None for row in rows] == [False] * (len(rows) - 1) + [True]
    assert all(row.valid_until == following.valid_from for row, following in pairwise(rows))
    assert rows[-1].input_cost_per_1m == ModelPrice.objects.get().input_cost_per_1m


@pytest.mark.parametrize("of_all", [False, True])
def test_set_price__same_model_at_once__one_row_and_periods_that_meet(of_all: bool) -> None:
    project_id = None if of_all else make_project().pk
    name: dict[str, Any] = {"provider": "openai", "model": "gpt-4o", "project_id": project_id}
    at_once(CALLERS, lambda number: set_price(**name, costs=costs(number + 1), actor=f"user:{number}"))
    assert PricePeriod.objects.count() == CALLERS
    assert_periods_meet()


def test_set_and_remove_price__at_once__row_and_open_period_agree() -> None:
    project = make_project()
    name: dict[str, Any] = {"provider": "openai", "model": "gpt-4o", "project_id": project.pk, "actor": "user:x"}

    def change(number: int) -> None:
        if number % 2:
            remove_price(**name)
        else:
            set_price(**name, costs=costs(number + 1))

    at_once(CALLERS, change)
    assert ModelPrice.objects.count() == PricePeriod.objects.filter(valid_until=None).count()


def test_sync__at_once__one_runs_and_the_others_are_refused(server: CatalogServer) -> None:
    barrier = Barrier(CALLERS)
    server.serve("/a", {"gpt-4o": model_a(1, 1)})
    server.serve("/b", catalog_b(groq={"llama-9": (1, 1)}))
    serve = server.pages["/a"]

    def slow(request: Any) -> None:
        # The answer waits until all other runs have been refused.
        barrier.wait(TIMEOUT_SECONDS)
        serve(request)

    server.pages["/a"] = slow

    def run(_: int) -> str:
        try:
            return sync_prices(trigger=PriceSyncLog.Trigger.API).status
        except ApplicationError as error:
            barrier.wait(TIMEOUT_SECONDS)
            return error.code

    assert Counter(at_once(CALLERS, run)) == {"success": 1, "sync_running": CALLERS - 1}
    assert PriceSyncLog.objects.count() == 1
    assert ModelPrice.objects.count() == 3


def test_sync__beside_shipped_list_and_prices_by_hand__all_of_them_hold(server: CatalogServer) -> None:
    server.serve("/a", {"gpt-4o": model_a(1, 1), "gpt-9": model_a(2, 2)})
    server.serve("/b", catalog_b(groq={"llama-9": (1, 1)}))

    def change(number: int) -> None:
        if number == 0:
            sync_prices(trigger=PriceSyncLog.Trigger.API)
        elif number == 1:
            load_shipped_prices()
        else:
            name: dict[str, Any] = {"provider": "openai", "model": f"gpt-{number}"}
            set_price(**name, project_id=None, costs=costs(7), actor="user:x")

    at_once(CALLERS, change)
    assert PriceSyncLog.objects.get().status == "success"
    assert ModelPrice.objects.filter(source="manual").count() == CALLERS - 2
    assert ModelPrice.objects.get(provider="openai", model="gpt-9").input_cost_per_1m == 2
    assert ModelPrice.objects.get(provider="openai", model="gpt-4o").input_cost_per_1m == 1
    open_ones = PricePeriod.objects.filter(valid_until=None)
    assert set(open_ones.values_list("provider", "model", "source")) == set(
        ModelPrice.objects.values_list("provider", "model", "source")
    )
