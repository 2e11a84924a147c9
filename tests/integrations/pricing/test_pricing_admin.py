from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from core.roles import Role
from integrations.models import ModelPrice, PricePeriod, PriceSyncLog
from integrations.pricing.services import load_shipped_prices, set_price
from integrations.pricing.sync import sync_prices
from tests.factories.core import make_project, make_staff
from tests.integrations.pricing.catalog_server import CatalogServer
from tests.integrations.pricing.catalogs import catalog_b, model_a

pytestmark = pytest.mark.django_db

PRICES = "/admin/integrations/modelprice/"
SYNCS = "/admin/integrations/pricesynclog/"
COSTS = {
    "input_cost_per_1m": "3",
    "output_cost_per_1m": "4",
    "cache_read_cost_per_1m": "",
    "cache_write_cost_per_1m": "",
}


def staff(role: Role) -> Client:
    client = Client()
    client.force_login(make_staff(role, make_project()))
    return client


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def test_price__changed_by_an_operator__manual_and_in_the_history(root: Client) -> None:
    load_shipped_prices()
    row = ModelPrice.objects.get(provider="openai", model="gpt-4o")
    assert root.post(f"{PRICES}{row.pk}/change/", COSTS).status_code == 302
    row.refresh_from_db()
    assert (row.source, row.input_cost_per_1m, row.model) == ("manual", Decimal(3), "gpt-4o")
    first, second = PricePeriod.objects.filter(provider="openai", model="gpt-4o").order_by("valid_from", "pk")
    assert first.valid_until == second.valid_from
    assert (second.changed_by, second.valid_until) == ("user:root", None)


def test_price__deleted__back_to_the_catalog_which_cannot_be_deleted(root: Client) -> None:
    load_shipped_prices()
    row = ModelPrice.objects.get(provider="openai", model="gpt-4o")
    assert root.post(f"{PRICES}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    root.post(f"{PRICES}{row.pk}/change/", COSTS)
    assert root.post(f"{PRICES}{row.pk}/delete/", {"post": "yes"}).status_code == 302
    row.refresh_from_db()
    assert (row.source, row.input_cost_per_1m) == ("catalog_a", Decimal("2.5"))


def test_price__added_for_one_project__counts_there(root: Client) -> None:
    project = make_project()
    added = root.post(f"{PRICES}add/", {**COSTS, "project": str(project.pk), "provider": "vllm", "model": "own/model"})
    assert added.status_code == 302
    row = ModelPrice.objects.get()
    assert (row.project_id, row.source, row.provider, row.model) == (project.pk, "manual", "vllm", "own/model")
    again = root.post(f"{PRICES}add/", {**COSTS, "project": str(project.pk), "provider": "vllm", "model": "own/model"})
    assert again.status_code == 200
    assert ModelPrice.objects.count() == PricePeriod.objects.count() == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"input_cost_per_1m": "-1"},
        {"output_cost_per_1m": "10001"},
        {"cache_read_cost_per_1m": "NaN"},
        {"provider": "nobody"},
        {"model": "a\tb"},
    ],
)
def test_price__nonsense__refused(root: Client, bad: dict[str, Any]) -> None:
    given = {**COSTS, "project": "", "provider": "openai", "model": "gpt-4o", **bad}
    assert root.post(f"{PRICES}add/", given).status_code == 200
    assert not ModelPrice.objects.exists()


@pytest.fixture
def synced(server: CatalogServer) -> CatalogServer:
    server.serve("/a", {"gpt-4o": model_a(1, 1)})
    server.serve("/b", catalog_b(groq={"llama-9": (1, 1)}))
    return server


def test_sync__button__runs_and_is_in_the_list(root: Client, synced: CatalogServer) -> None:
    assert b"Sync now" in root.get(SYNCS).content
    assert root.get(f"{SYNCS}sync/").status_code == 405
    page = root.post(f"{SYNCS}sync/", follow=True)
    assert b"The sync ended: success." in page.content
    log = PriceSyncLog.objects.get()
    assert (log.trigger, log.started_by) == ("admin", "user:root")
    PriceSyncLog.objects.update(status="running")
    assert b"being synced at the moment" in root.post(f"{SYNCS}sync/", follow=True).content


def test_sync__without_the_permission_or_csrf_token__refused(synced: CatalogServer) -> None:
    clerk = staff(Role.EDITOR)
    assert b"Sync now" not in clerk.get(SYNCS).content
    assert clerk.post(f"{SYNCS}sync/").status_code == 403
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create_superuser("root"))
    assert strict.post(f"{SYNCS}sync/").status_code == 403
    assert not PriceSyncLog.objects.exists()


def test_pages__history_and_runs__read_only(root: Client, synced: CatalogServer) -> None:
    log = sync_prices(trigger=PriceSyncLog.Trigger.COMMAND)
    set_price(project_id=make_project().pk, provider="openai", model="gpt-4o", costs={}, actor="key:1")
    period = PricePeriod.objects.first()
    assert period is not None
    for page in (SYNCS, f"{SYNCS}{log.pk}/change/", PRICES, f"{PRICES}add/"):
        assert root.get(page).status_code == 200
    assert b"key:1" in root.get("/admin/integrations/priceperiod/?q=gpt").content
    for page in (f"/admin/integrations/priceperiod/{period.pk}/", f"{SYNCS}{log.pk}/"):
        assert root.post(f"{page}change/", {}).status_code == 403
        assert root.post(f"{page}delete/", {"post": "yes"}).status_code == 403
