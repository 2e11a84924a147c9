"""Tests both real catalogs through the sync, and the costs that follow from their prices; needs SHARED_DIR."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from integrations.models import CatalogPrice, ModelPrice, PricePeriod, PriceSyncLog
from integrations.pricing.cost import Price, cost_of
from integrations.pricing.lookup import find_price
from integrations.pricing.services import set_price
from integrations.pricing.sync import sync_prices
from integrations.providers.usage import Usage
from integrations.selectors import price_table
from tests.integrations.pricing.catalog_server import CatalogServer, respond
from tests.recordings import shared_file

pytestmark = pytest.mark.django_db

SHARED = [
    (a, b) for a, b in [(shared_file("pricing", "catalog_a.json"), shared_file("pricing", "catalog_b.json"))] if a and b
]
Table = Mapping[tuple[str, str], Price]


def run() -> PriceSyncLog:
    return sync_prices(trigger=PriceSyncLog.Trigger.COMMAND)


def counts(log: PriceSyncLog) -> tuple[int, int, int]:
    return log.added, log.updated, log.removed


def statuses(log: PriceSyncLog) -> list[str]:
    return [log.catalogs[source]["status"] for source in ("catalog_a", "catalog_b")]


def zipped(body: bytes) -> Any:
    def answer(request: BaseHTTPRequestHandler) -> None:
        assert "gzip" in request.headers["Accept-Encoding"]
        respond(request, 200, gzip.compress(body, 1), Content_Encoding="gzip", ETag='"zipped"')

    return answer


@pytest.mark.parametrize(("first", "second"), SHARED)
def test_sync__the_life_of_both_real_catalogs__history_has_every_change(
    server: CatalogServer, first: Path, second: Path
) -> None:
    body_a, body_b = first.read_bytes(), second.read_bytes()
    manual = {"input_cost_per_1m": Decimal(123), "output_cost_per_1m": Decimal(456)}
    set_price(project_id=None, provider="anthropic", model="claude-opus-4-5", costs=manual, actor="user:op")

    server.serve("/a", body_a, etag='"a1"')
    server.serve("/b", body_b, etag='"b1"')
    started = time.process_time()
    log = run()
    # The process's own CPU time is measured, which other processes on the machine do not increase.
    assert time.process_time() - started < 10
    assert (log.status, log.errors) == ("success", [])
    assert log.added > 2000 and log.updated == log.removed == 0
    good = price_table()
    check_manual_stays(good)

    log = run()
    assert statuses(log) == ["not_modified", "not_modified"] and counts(log) == (0, 0, 0)

    server.pages["/a"] = lambda request: respond(request, 200, body_a[: len(body_a) // 2])
    assert statuses(run()) == ["failed", "not_modified"]
    server.pages["/a"] = lambda request: respond(request, 200, body_a[:1000], Content_Length=str(len(body_a)))
    assert statuses(run()) == ["failed", "not_modified"]
    server.fail("/b", 500)
    assert statuses(run()) == ["failed", "failed"]
    assert price_table() == good

    changed = json.loads(body_a)
    removed = changed.pop("gpt-4o")
    assert removed["litellm_provider"] == "openai"
    changed["gpt-4.1"]["input_cost_per_token"] = -1
    changed["gpt-4.1-mini"]["output_cost_per_token"] = 1e6
    changed["o3"]["input_cost_per_token"] = 1.5e-6
    server.serve("/a", changed)
    log = run()
    assert (log.status, statuses(log)) == ("partial", ["read", "failed"])
    assert log.catalogs["catalog_a"]["refused"] == 2
    assert [error["model"] for error in log.errors if error["model"]] == ["openai/gpt-4.1", "openai/gpt-4.1-mini"]
    check_after_change(good)

    server.pages["/a"], server.pages["/b"] = zipped(body_a), zipped(body_b)
    assert run().status == "success"
    assert price_table() == good
    check_history()


def check_manual_stays(table: Table) -> None:
    assert table["anthropic", "claude-opus-4-5"].input == 123
    assert CatalogPrice.objects.get(source="catalog_a", provider="anthropic", model="claude-opus-4-5").pk


def check_after_change(good: Table) -> None:
    table = price_table()
    # Catalog B also has the removed model and its fetch just failed, so its last price applies.
    assert ModelPrice.objects.get(provider="openai", model="gpt-4o", project=None).source == "catalog_b"
    assert table["openai", "o3"].input == Decimal("1.5")
    assert table["openai", "gpt-4.1"] == good["openai", "gpt-4.1"]
    assert table["openai", "gpt-4.1-mini"] == good["openai", "gpt-4.1-mini"]
    differing = {key for key in good if table.get(key) != good[key]}
    assert differing <= {("openai", "o3"), ("openai", "gpt-4o")}
    check_manual_stays(table)


def check_history() -> None:
    """Asserts that every model has one open period, and that a closed one ends where the next begins."""
    periods = PricePeriod.objects.filter(provider="openai", model="o3").order_by("valid_from")
    assert [period.valid_until is None for period in periods] == [False, False, True]
    assert periods[0].valid_until == periods[1].valid_from
    assert [f"{period.input_cost_per_1m:f}" for period in periods][1] == "1.5000000000"
    assert PricePeriod.objects.filter(valid_until=None).count() == ModelPrice.objects.count()
    assert [log.status for log in PriceSyncLog.objects.order_by("pk")] == [
        *["success"] * 2,
        *["partial"] * 2,
        "failed",
        "partial",
        "success",
    ]


@dataclass(frozen=True)
class Known:
    """A model under the gateway's names, and its catalog's prices: dollars per token, or None."""

    provider: str
    model: str
    costs: tuple[Fraction | None, Fraction | None, Fraction | None, Fraction | None]


# A key holds the gateway's provider and the prefix of catalog A's names, its value a list of models.
FROM_A = {
    ("openai", ""): ["gpt-5.6", "gpt-6-astra", "gpt-4.1", "gpt-4.1-mini", "gpt-4o", "o3", "ft:gpt-3.5-turbo"],
    ("anthropic", ""): [
        "claude-haiku-4-5",
        "claude-sonnet-4-5",
        "claude-sonnet-4-6",
        "claude-sonnet-5",
        "claude-opus-4-5",
        "claude-opus-4-5-20251101",
    ],
    ("google", "gemini/"): ["gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-exp-1114"],
    ("azure_openai", "azure/"): ["gpt-5.6", "eu/gpt-4o", "codex-mini", "gpt-35-turbo", "command-r-plus"],
    ("bedrock", ""): [
        "anthropic.claude-3-5-haiku-20241022-v1:0",
        "anthropic.claude-haiku-4-5-20251001-v1:0",
        "global.anthropic.claude-opus-4-6-v1",
        "us.anthropic.claude-opus-4-6-v1",
        "amazon.nova-lite-v1:0",
        "us.writer.palmyra-x5-v1:0",
    ],
    ("mistral", "mistral/"): ["codestral-2508", "codestral-latest", "ministral-14b-latest"],
    ("cohere", ""): ["command-a-03-2025", "command-r-08-2024", "command-r7b-12-2024"],
    ("groq", "groq/"): ["openai/gpt-oss-120b", "openai/gpt-oss-20b"],
    ("xai", "xai/"): ["grok-4.3", "grok-4.5", "grok-build-latest"],
    ("deepseek", "deepseek/"): ["deepseek-v3", "deepseek-r1", "deepseek-v3.2"],
    ("perplexity", "perplexity/"): ["openai/gpt-6-astra", "anthropic/claude-opus-4-6", "codellama-34b-instruct"],
    ("together", "together_ai/"): ["MiniMaxAI/MiniMax-M3", "deepseek-ai/DeepSeek-V4.1-Flash"],
    ("fireworks", "fireworks_ai/"): ["accounts/fireworks/models/glm-5p2", "accounts/fireworks/models/deepseek-r1"],
    ("cerebras", "cerebras/"): ["llama-3.3-70b", "gpt-oss-120b"],
}
FIELDS_A = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
# Catalog A does not have this provider.
FROM_B = {("huggingface", "huggingface"): ["MiniMaxAI/MiniMax-M2.5", "MiniMaxAI/MiniMax-M2.7", "MiniMaxAI/MiniMax-M3"]}
FIELDS_B = ("input", "output", "cache_read", "cache_write")


def exact(fields: Mapping[str, Any], names: tuple[str, ...], per: int) -> Any:
    return tuple(None if fields.get(name) is None else Fraction(str(fields[name])) / per for name in names)


def known_models(first: Path, second: Path) -> list[Known]:
    listed_a = json.loads(first.read_bytes(), parse_float=str)
    listed_b = json.loads(second.read_bytes(), parse_float=str)
    found = []
    for (provider, prefix), models in FROM_A.items():
        for model in models:
            fields = listed_a[prefix + model]
            found.append(Known(provider, model, exact(fields, FIELDS_A, 1)))
    for (provider, listed), models in FROM_B.items():
        for model in models:
            fields = listed_b[listed]["models"][model]["cost"]
            found.append(Known(provider, model, exact(fields, FIELDS_B, 1_000_000)))
    return found


USAGE = Usage(prompt_tokens=123_457, completion_tokens=7_919, cache_read_tokens=60_013, cache_write_tokens=20_011)
FRESH = 123_457 - 60_013 - 20_011


def by_hand(known: Known) -> Fraction:
    """Returns the cost of fresh input, cache reads, cache writes and output, each token once; a cache class without a
    price costs the same as input."""
    input_cost, output_cost, read, write = known.costs
    assert input_cost is not None and output_cost is not None
    cached = 60_013 * (input_cost if read is None else read) + 20_011 * (input_cost if write is None else write)
    return FRESH * input_cost + cached + 7_919 * output_cost


@pytest.mark.parametrize(("first", "second"), SHARED)
def test_cost__fifty_models_of_many_providers__equals_the_catalogs_arithmetic(
    server: CatalogServer, first: Path, second: Path
) -> None:
    server.serve("/a", first.read_bytes())
    server.serve("/b", second.read_bytes())
    run()
    table, models = price_table(), known_models(first, second)
    assert len(models) >= 50 and len({known.provider for known in models}) >= 12
    assert sum(known.costs[2] is not None for known in models) >= 25
    assert sum(known.costs[3] is not None for known in models) >= 8
    for known in models:
        price = find_price(table, known.provider, known.model)
        assert price is not None, known
        # Each of the four classes is rounded to ten decimal places.
        assert abs(Fraction(cost_of(USAGE, price).total) - by_hand(known)) <= Fraction(2, 10**10), known
