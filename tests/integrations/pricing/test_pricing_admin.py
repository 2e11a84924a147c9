from __future__ import annotations

import pytest
from django.test import Client

from integrations.models import PriceSyncLog
from integrations.pricing.services import set_price
from integrations.pricing.sync import sync_prices
from tests.factories.core import make_project
from tests.integrations.pricing.catalog_server import CatalogServer
from tests.integrations.pricing.catalogs import model_a

pytestmark = pytest.mark.django_db


def test_tables__prices_history_and_runs__shown(admin_client: Client, server: CatalogServer) -> None:
    server.serve("/a", {"gpt-4o": model_a(1, 1)})
    log = sync_prices(trigger=PriceSyncLog.Trigger.COMMAND)
    set_price(project_id=make_project().pk, provider="openai", model="gpt-4o", costs={}, actor="key:1")

    for page in ("modelprice/?q=gpt", "pricesynclog/", f"pricesynclog/{log.pk}/change/"):
        assert admin_client.get(f"/admin/integrations/{page}").status_code == 200
    assert b"key:1" in admin_client.get("/admin/integrations/priceperiod/?q=gpt").content
