"""Without ClickHouse, the endpoints that need it answer 503, and all others work."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from core.models import Project
from tests.analytics.contract.endpoints import ENDPOINTS, Endpoint
from tests.store_away import store_away

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
def test_endpoint__store_away__503_only_where_it_is_needed(
    api: APIClient, project: Project, endpoint: Endpoint
) -> None:
    with store_away():
        answer = endpoint.call(api, project)

    if endpoint.store:
        assert answer.status_code == 503, answer.content
        assert answer.json()["error"]["code"] == "analytics_unavailable"
        assert answer.json()["error"]["type"] == "service_unavailable_error"
    else:
        assert answer.status_code in ((404,) if endpoint.method == "DELETE" else (200, 201)), answer.content
