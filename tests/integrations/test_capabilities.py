from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from integrations.capabilities import lookup, shipped
from integrations.capabilities.lookup import Capabilities, RequestNeeds, can, capabilities_of
from integrations.capabilities.shipped import CAPABILITIES, build
from integrations.pricing.entries import CatalogError
from integrations.registry import is_known
from tests.recordings import shared_file

CATALOG_A: dict[str, Any] = {
    "sample_spec": {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 1},
    "gpt-x": {
        "litellm_provider": "openai",
        "mode": "chat",
        "max_input_tokens": 1000,
        "max_output_tokens": 100,
        "supports_vision": True,
        "supports_audio_input": False,
        "supports_parallel_function_calling": True,
    },
    "only-a": {
        "litellm_provider": "openai",
        "mode": "chat",
        "supports_response_schema": True,
        "max_input_tokens": "2e3",
    },
    "says-nothing": {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 0, "supports_vision": None},
    "us.vendor.model-v1:0": {"litellm_provider": "bedrock", "mode": "chat", "max_input_tokens": 500},
    "bedrock/us-east-1/vendor.model-v1:0": {"litellm_provider": "bedrock", "mode": "chat", "max_input_tokens": 5},
    "embedding": {"litellm_provider": "openai", "mode": "embedding", "max_input_tokens": 10},
}
CATALOG_B: dict[str, Any] = {
    "openai": {
        "models": {
            "gpt-x": {
                "tool_call": True,
                "reasoning": False,
                "limit": {"context": 2000, "output": 50},
                "modalities": {"input": ["text", "audio"], "output": ["text"]},
            },
            "text-only": {"modalities": {"input": ["text"], "output": ["text"]}, "limit": {"context": True}},
            "painter": {"modalities": {"input": ["text"], "output": ["image"]}, "limit": {"context": 9}},
            "odd": {"modalities": None, "limit": 7, "tool_call": "yes", "structured_output": False},
        }
    },
    "mistral": {"models": {"reader": {"modalities": {"input": ["text"], "output": ["text"]}}}},
}


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Replaces the shipped list by the two small catalogs above."""
    file = tmp_path / "capabilities.json"
    file.write_text(build(CATALOG_A, CATALOG_B))
    monkeypatch.setattr(shipped, "CAPABILITIES", file)
    _forget()
    yield file
    _forget()


def _forget() -> None:
    capabilities_of.cache_clear()
    lookup._table.cache_clear()


@pytest.mark.usefixtures("listed")
def test_build__model_of_both_catalogs__has_the_abilities_of_either() -> None:
    assert capabilities_of("openai", "gpt-x") == Capabilities(
        context_window=2000,
        max_output_tokens=100,
        images=True,
        audio=True,
        video=False,
        tools=True,
        parallel_tools=True,
        reasoning=False,
    )


@pytest.mark.usefixtures("listed")
def test_build__ability_in_no_catalog__is_unknown() -> None:
    assert capabilities_of("openai", "only-a") == Capabilities(schema=True)
    assert capabilities_of("openai", "odd") == Capabilities(schema=False)
    for model in ("says-nothing", "painter", "embedding", "sample_spec"):
        assert capabilities_of("openai", model) is None


@pytest.mark.usefixtures("listed")
def test_build__text_model__reads_no_documents_unless_its_service_does() -> None:
    text_only, reader = capabilities_of("openai", "text-only"), capabilities_of("mistral", "reader")
    assert text_only is not None
    assert reader is not None
    assert (text_only.images, text_only.documents, text_only.context_window) == (False, False, None)
    assert (reader.images, reader.documents) == (False, None)


def test_build__bedrock_regions__are_one_model(listed: Path) -> None:
    assert json.loads(listed.read_bytes())["bedrock"] == {"vendor.model-v1:0": [500, None, ""]}


@pytest.mark.parametrize("broken", [None, [], {}, "x"])
def test_build__no_catalog__is_refused(broken: Any) -> None:
    with pytest.raises(CatalogError):
        build(broken, CATALOG_B)
    with pytest.raises(CatalogError):
        build(CATALOG_A, broken)


def test_build_capabilities__two_files__writes_the_list(tmp_path: Path) -> None:
    for name, catalog in (("a", CATALOG_A), ("b", CATALOG_B)):
        (tmp_path / name).write_text(json.dumps(catalog))
    output = tmp_path / "out.json"
    arguments = ["--catalog-a", str(tmp_path / "a"), "--catalog-b", str(tmp_path / "b"), "--output", str(output)]
    call_command("build_capabilities", *arguments, stdout=StringIO())
    assert json.loads(output.read_bytes())["openai"]["gpt-x"] == [2000, 100, "iatp-vr"]
    (tmp_path / "b").write_text("{")
    with pytest.raises(CommandError):
        call_command("build_capabilities", *arguments, stdout=StringIO())


def test_shipped_list__of_known_providers__small() -> None:
    listed = json.loads(CAPABILITIES.read_bytes())
    assert CAPABILITIES.stat().st_size < 400_000
    assert len(listed) >= 18
    assert [provider for provider in listed if not is_known(provider)] == []


SHARED = [
    (a, b) for a, b in [(shared_file("pricing", "catalog_a.json"), shared_file("pricing", "catalog_b.json"))] if a and b
]


@pytest.mark.parametrize(("first", "second"), SHARED)
def test_shipped_list__built_from_the_catalogs__is_up_to_date(first: Path, second: Path) -> None:
    assert build(json.loads(first.read_bytes()), json.loads(second.read_bytes())) == CAPABILITIES.read_text()


# The facts are those of the vendors' model pages.
@pytest.mark.parametrize(
    ("provider", "model", "context", "able", "unable"),
    [
        ("anthropic", "claude-sonnet-4-5", 200_000, "images documents tools reasoning", "audio video"),
        ("anthropic", "claude-sonnet-4-5-20250929", 200_000, "images documents tools reasoning", "audio video"),
        ("anthropic", "claude-haiku-4-5-latest", 200_000, "images documents tools", "audio video"),
        ("anthropic", "claude-opus-4-5", 200_000, "images documents tools reasoning", "audio"),
        ("openai", "gpt-4o", 128_000, "images documents tools parallel_tools schema", "video reasoning"),
        ("openai", "gpt-4o-2024-08-06", 128_000, "images tools schema", "video"),
        ("openai", "gpt-4.1-mini", 1_047_576, "images tools schema", "reasoning"),
        ("openai", "gpt-5", 400_000, "images documents tools schema reasoning", "audio"),
        ("openai", "o3-mini", 200_000, "tools schema reasoning", "images"),
        ("azure_openai", "gpt-4o", 128_000, "images tools schema", "audio"),
        ("google", "gemini-2.5-pro", 1_048_576, "images documents audio video tools schema reasoning", ""),
        ("google", "models/gemini-2.5-flash", 1_048_576, "images documents audio video tools schema", ""),
        ("google_vertex", "publishers/google/models/gemini-2.5-flash", 1_048_576, "images documents audio video", ""),
        ("google_vertex", "claude-sonnet-4-5@20250929", 200_000, "images documents tools", "audio"),
        ("mistral", "mistral-large-latest", 262_144, "images tools schema", "audio"),
        ("mistral", "pixtral-12b-2409", 128_000, "images tools", "audio"),
        ("cohere", "command-a-03-2025", 256_000, "tools", "images audio video"),
        ("cohere", "command-r-plus-08-2024", 128_000, "tools", "images"),
        ("bedrock", "amazon.nova-pro-v1:0", 300_000, "images documents video tools", "audio"),
        ("bedrock", "us.amazon.nova-lite-v1:0", 300_000, "images documents video tools", "audio"),
        ("bedrock", "amazon.nova-micro-v1:0", 128_000, "tools", "images video"),
        ("bedrock", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, "images documents tools", "audio"),
        (
            "bedrock",
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0",
            200_000,
            "images documents tools",
            "audio",
        ),
        ("deepseek", "deepseek-chat", None, "tools", "images audio"),
        ("deepseek", "deepseek-reasoner", None, "reasoning", "images"),
        ("xai", "grok-4.3", None, "tools reasoning", ""),
        ("groq", "llama-3.3-70b-versatile", 131_072, "tools", "images audio"),
        ("groq", "openai/gpt-oss-120b", 131_072, "tools reasoning", "images"),
        ("cerebras", "gpt-oss-120b", 131_072, "tools reasoning", "images"),
        ("together", "meta-llama/Llama-3.3-70B-Instruct-Turbo", 131_072, "tools", "images"),
        ("openrouter", "anthropic/claude-sonnet-4.5", 1_000_000, "images documents tools", "audio"),
        ("perplexity", "sonar", 128_000, "", "audio"),
        ("zai", "glm-4.6", 204_800, "tools reasoning", "images"),
        ("huggingface", "openai/gpt-oss-120b", 131_072, "tools reasoning", "images"),
    ],
)
def test_capabilities__well_known_model(provider: str, model: str, context: int | None, able: str, unable: str) -> None:
    found = capabilities_of(provider, model)
    assert found is not None
    assert context in (None, found.context_window)
    assert {name: getattr(found, name) for name in able.split()} == dict.fromkeys(able.split(), True)
    assert {name: getattr(found, name) for name in unable.split()} == dict.fromkeys(unable.split(), False)


@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "no-such-model"), ("nobody", "gpt-4o"), ("ollama", "llama3.2"), ("bedrock", ""), ("openai", "/")],
)
def test_capabilities__unknown__is_none_and_able(provider: str, model: str) -> None:
    assert capabilities_of(provider, model) is None
    assert can(provider, model, RequestNeeds(images=True, tools=True, schema=True, tokens=10**9))


@pytest.mark.parametrize(
    ("needs", "able"),
    [
        (RequestNeeds(), True),
        (RequestNeeds(tools=True, tokens=128_000), True),
        (RequestNeeds(tokens=256_001), False),
        (RequestNeeds(images=True), False),
        (RequestNeeds(documents=True), False),
        (RequestNeeds(audio=True), False),
        (RequestNeeds(video=True), False),
        (RequestNeeds(schema=True), True),  # Neither catalog lists the ability to follow a schema.
    ],
)
def test_can__known_text_model__only_what_is_known_to_fail_is_refused(needs: RequestNeeds, able: bool) -> None:
    assert can("cohere", "command-a-03-2025", needs) is able


@pytest.mark.usefixtures("listed")
def test_can__tools_and_schema_known_to_be_missing__refused() -> None:
    assert not can("openai", "odd", RequestNeeds(schema=True))
    assert can("openai", "odd", RequestNeeds(tools=True))


def test_capabilities__many_threads_at_first_use__agree() -> None:
    _forget()
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _: capabilities_of("openai", "gpt-4o"), range(64)))
    assert len(found) == 1
