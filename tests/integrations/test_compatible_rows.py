"""Tests the differences of every row of OpenAI's dialect, and that the rest of the product knows it.
`tests/integrations/adapters` tests one row of each kind for their common behaviour."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from integrations.capabilities.lookup import capabilities_of
from integrations.pricing import shipped
from integrations.pricing.lookup import find_entry
from integrations.providers.base import ChatRequest, Credentials
from integrations.providers.openai.compatible import DIALECTS
from integrations.providers.openai.dialect import Dialect
from integrations.registry import PREFIXES, adapter_for, resolve
from integrations.transport.addresses import check_base_url
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.story import Story
from tests.tables.cases import tabled

KEY = "sk-canary-4f9a1c77e2"
VENDORS = [row for row in DIALECTS if row.page]
LOCAL = {"ollama"}
# Each account has an address of its own at Snowflake, Databricks and Cloudflare.
ADDRESSED_BY_ACCOUNT = {"snowflake", "databricks", "cloudflare"}


def named(row: Dialect) -> str:
    return row.provider


def request(model: str, **fields: object) -> ChatRequest:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], **fields}
    return ChatRequest(model, bool(fields.get("stream")), json.dumps(body).encode(), body)


def test_rows__each_provider__once() -> None:
    names = [row.provider for row in DIALECTS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("row", VENDORS, ids=named)
def test_row__of_a_vendor__names_its_page_and_its_address_or_has_none(row: Dialect) -> None:
    assert urlsplit(row.page).scheme == "https"
    assert bool(row.base_url) == (row.provider not in ADDRESSED_BY_ACCOUNT)
    assert not row.base_url.endswith(("/", "/chat/completions"))
    if row.base_url and row.provider not in LOCAL:
        assert row.base_url.startswith("https://")
        check_base_url(row.base_url, allow_private=False)


@pytest.mark.parametrize("row", VENDORS, ids=named)
def test_row__request_with_a_key__goes_to_the_address_as_it_came(row: Dialect) -> None:
    base_url = row.base_url or "https://account.example.com/api"
    sent = request(row.default_model, temperature=0.5)
    upstream = adapter_for(row.provider).build_request(sent, Credentials(1, row.provider, base_url, KEY))
    assert upstream.url == f"{base_url}/chat/completions"
    assert upstream.headers["authorization"] == f"Bearer {KEY}"
    assert upstream.body == sent.body
    assert upstream.warnings == ()


@pytest.mark.parametrize("row", VENDORS, ids=named)
def test_row__answer_of_its_fake__is_read(row: Dialect) -> None:
    response = FAKES[row.provider].whole(Story(text="Fine.", reasoning="Well."))
    answer = adapter_for(row.provider).parse_response(request(row.default_model), response.body)
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == "Fine."
    assert answer.usage is not None


@pytest.mark.parametrize("row", [row for row in VENDORS if row.default_model], ids=named)
def test_row__provider_and_model__is_its_alone_under_its_own_name(row: Dialect) -> None:
    (found,) = resolve(f"{row.provider}/{row.default_model}", {row.provider, "openrouter", "openai_compatible"})
    assert (found.provider, found.upstream_model) == (row.provider, row.default_model)


@pytest.mark.parametrize("row", VENDORS, ids=named)
def test_row__what_it_refuses_and_ignores__is_dropped_or_named(row: Dialect) -> None:
    sent: dict[str, object] = dict.fromkeys((*row.drops, *row.ignores), 1)
    credentials = Credentials(1, row.provider, row.base_url or "https://account.example.com/api", KEY)
    upstream = adapter_for(row.provider).build_request(request(row.default_model, **sent), credentials)
    left = json.loads(upstream.body)
    assert not left.keys() & set(row.drops)
    assert left.keys() >= set(row.ignores)
    assert {warning.partition(":")[0] for warning in upstream.warnings} == set(sent)


@tabled
@pytest.mark.parametrize("provider", ["dashscope", "siliconflow"])
def test_thinking__of_a_vendor_with_a_switch__becomes_the_switch(
    provider: str, thinking: dict[str, object], expected: dict[str, object]
) -> None:
    credentials = Credentials(1, provider, "https://account.example.com/v1", KEY)
    left = json.loads(adapter_for(provider).build_request(request("m", thinking=thinking), credentials).body)
    assert {name: left[name] for name in left if "think" in name} == expected


def test_thinking__beside_the_vendors_own_switch__the_switch_counts() -> None:
    credentials = Credentials(1, "dashscope", "", KEY)
    sent = request("qwen-plus", thinking={"type": "enabled", "budget_tokens": 1024}, enable_thinking=False)
    left = json.loads(adapter_for("dashscope").build_request(sent, credentials).body)
    assert left["enable_thinking"] is False
    assert not left.keys() & {"thinking", "thinking_budget"}


@pytest.mark.parametrize(
    ("model", "enabled", "expected"),
    [
        ("kimi-k2.6", {"moonshot", "openrouter"}, [("moonshot", "kimi-k2.6")]),
        ("qwen-plus", {"dashscope"}, [("dashscope", "qwen-plus")]),
        ("qwen3.8-max", {"dashscope", "ollama"}, [("dashscope", "qwen3.8-max")]),
        ("MiniMax-M2.5", {"minimax"}, [("minimax", "MiniMax-M2.5")]),
        ("@cf/openai/gpt-oss-20b", {"cloudflare"}, [("cloudflare", "@cf/openai/gpt-oss-20b")]),
        ("databricks-claude-sonnet-4-5", {"databricks"}, [("databricks", "databricks-claude-sonnet-4-5")]),
        ("deepseek-ai/DeepSeek-V3.2", {"deepinfra"}, [("deepinfra", "deepseek-ai/DeepSeek-V3.2")]),
        ("meta/llama-4", {"github", "requesty"}, [("requesty", "meta/llama-4"), ("github", "meta/llama-4")]),
        ("openai/gpt-4o-mini", {"github"}, []),
        ("github/openai/gpt-4o-mini", {"github", "openai"}, [("github", "openai/gpt-4o-mini")]),
        # The names of NVIDIA's own models begin with the vendor's name.
        ("nvidia/nemotron-3-super", {"nvidia"}, [("nvidia", "nvidia/nemotron-3-super")]),
        ("nvidia/nvidia/nemotron-3-super", {"nvidia"}, [("nvidia", "nvidia/nemotron-3-super")]),
        ("nvidia/meta/llama-3.3-70b-instruct", {"nvidia"}, [("nvidia", "meta/llama-3.3-70b-instruct")]),
        ("nvidia/nemotron-3-super", {"together"}, []),
        ("together/nvidia/nemotron-3-super", {"together"}, [("together", "nvidia/nemotron-3-super")]),
        ("minimax/MiniMax-M2", {"openrouter", "minimax"}, [("minimax", "MiniMax-M2")]),
    ],
)
def test_resolve__models_of_these_vendors__theirs(
    model: str, enabled: set[str], expected: list[tuple[str, str]]
) -> None:
    assert [(found.provider, found.upstream_model) for found in resolve(model, enabled)] == expected


def test_prefixes__providers_named__are_known() -> None:
    named_by_prefix = {provider for prefix in PREFIXES for provider in prefix.providers}
    assert {"moonshot", "dashscope", "minimax", "volcengine", "databricks", "cloudflare"} <= named_by_prefix


@pytest.mark.parametrize(
    ("provider", "model"),
    [("moonshot", "kimi-k2.6"), ("dashscope", "qwen-plus"), ("databricks", "databricks-claude-sonnet-4-5")],
)
def test_capabilities__models_of_these_vendors__are_listed(provider: str, model: str) -> None:
    found = capabilities_of(provider, model)
    assert found is not None
    assert found.context_window


# Neither catalog prices the default models of these providers, so their cost is unknown until a price is set by hand.
NOT_LISTED = {"featherless_ai", "ollama", "openrouter", "xai"}


def test_prices__default_model_of_every_vendor__is_found() -> None:
    """The catalogs' names of vendor and model are looked up, which sometimes differ from the gateway's."""
    table = {(entry.provider, entry.model): entry for _, entry in shipped.entries()}
    missing = {row.provider for row in VENDORS if find_entry(table, row.provider, row.default_model) is None}
    assert missing == NOT_LISTED, (
        "the default model of each of these has no price: correct `default_model`, write the price list anew"
        " (`manage.py build_price_list`), or, if the catalogs do not have it, change `NOT_LISTED` in this file:"
        f" {sorted(missing ^ NOT_LISTED)}"
    )
