"""Projects whose providers keep files and batches, at fakes of the vendors."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import anthropic
import openai
import pytest

from analytics.request_log.record import RequestRecord
from tests.fakes.batches import anthropic as fake_anthropic
from tests.fakes.batches import openai as fake_openai
from tests.fakes.batches.anthropic import AnthropicBatches
from tests.fakes.batches.openai import OpenAIBatches
from tests.gateway.service import Gateway, GatewayService

MODEL = "gpt-4o-mini"
CLAUDE = "claude-haiku-4-5"
# US dollars for a million tokens, with odd places, so that a cost that is rounded too early is noticed.
PRICES: list[dict[str, Any]] = [
    {"provider": "openai", "model": MODEL, "input": "0.1507", "output": "0.6013", "cache_read": "0.0751"},
    {"provider": "openai", "model": "text-embedding-3-small", "input": "0.02", "output": "0"},
    {
        "provider": "anthropic",
        "model": CLAUDE,
        "input": "1",
        "output": "5",
        "terms": {
            "tiers": [
                {
                    "service_tier": "batch",
                    "rates": {"input": "0.5003", "output": "2.5007", "cache_read": "0.0501", "cache_write": "0.6251"},
                }
            ]
        },
    },
]


@pytest.fixture
def vendor() -> Iterator[OpenAIBatches]:
    with OpenAIBatches() as server:
        yield server


@pytest.fixture
def claude() -> Iterator[AnthropicBatches]:
    with AnthropicBatches() as server:
        yield server


@pytest.fixture
def files(service: GatewayService, vendor: OpenAIBatches) -> Gateway:
    """A project at OpenAI."""
    return service.new_project(base_urls={"openai": vendor.base_url}, secret=fake_openai.KEY, prices=PRICES)


@pytest.fixture
def messages(service: GatewayService, claude: AnthropicBatches) -> Gateway:
    """A project at Anthropic."""
    return service.new_project(base_urls={"anthropic": claude.url}, secret=fake_anthropic.KEY, prices=PRICES)


def openai_client(gateway: Gateway, key: str = "", port: int | None = None) -> openai.OpenAI:
    base_url = f"{gateway.service.base_url(port)}/api/gateway/v1"
    return openai.OpenAI(base_url=base_url, api_key=key or gateway.key, max_retries=0)


def anthropic_client(gateway: Gateway, key: str = "") -> anthropic.Anthropic:
    base_url = f"{gateway.service.base_url()}/api/gateway"
    return anthropic.Anthropic(base_url=base_url, api_key=key or gateway.key, max_retries=0)


def priced(gateway: Gateway, count: int) -> list[RequestRecord]:
    """Returns the records of the lines of the project's batches, when there are as many."""

    def ask() -> list[RequestRecord]:
        records = [entry.record for entry in gateway.service.spooled.entries()]
        return [one for one in records if one.source == "batch" and one.project_id == gateway.project_id]

    found = gateway.service.until(ask, lambda found: len(found) >= count)
    assert len(found) == count
    return found


def total(records: list[RequestRecord]) -> Decimal:
    return sum((Decimal(record.cost_usd) for record in records if record.cost_usd), Decimal(0))
