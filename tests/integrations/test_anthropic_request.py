"""Tests requests to the Messages API: address and headers, limits and sampling, fields without a counterpart."""

from __future__ import annotations

import pytest

from integrations.providers.anthropic import ADAPTER
from tests.integrations.anthropic_requests import (
    BUDGETS,
)
from tests.integrations.exchanges import chat_request, credentials


@pytest.mark.parametrize("base_url", ["https://proxy.test", "https://proxy.test/", "https://proxy.test/v1", ""])
def test_request__base_url__with_or_without_v1(base_url: str) -> None:
    request = ADAPTER.build_request(chat_request(BUDGETS), credentials("anthropic", base_url, key="sk-ant-1"))
    assert request.url == f"{'https://proxy.test' if base_url else 'https://api.anthropic.com'}/v1/messages"
    assert request.headers["x-api-key"] == "sk-ant-1"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.headers["content-type"] == "application/json"
    assert "anthropic-beta" not in request.headers
    assert "sk-ant-1" not in repr(request)
