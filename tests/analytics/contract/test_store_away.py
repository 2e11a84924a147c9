"""Without ClickHouse, the endpoints that need it answer 503, and all others work."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from analytics.clickhouse import client
from core.models import Project
from tests.analytics.contract.endpoints import ENDPOINTS, Endpoint

pytestmark = pytest.mark.django_db


@pytest.fixture
def store_away(settings: object) -> None:
    client.close()
    settings.CLICKHOUSE_URL = "clickhouse://default@127.0.0.1:1/llm"  # type: ignore[attr-defined]  # pytest-django's fixture takes any name


@pytest.mark.usefixtures("store_away")
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
def test_endpoint__store_away__503_only_where_it_is_needed(
    api: APIClient, project: Project, endpoint: Endpoint
) -> None:
    answer = endpoint.call(api, project)

    if endpoint.store:
        assert answer.status_code == 503, answer.content
        assert answer.json()["error"]["code"] == "analytics_unavailable"
        assert answer.json()["error"]["type"] == "service_unavailable_error"
    else:
        assert answer.status_code in ((404,) if endpoint.method == "DELETE" else (200, 201)), answer.content
