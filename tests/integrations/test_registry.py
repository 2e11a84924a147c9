from __future__ import annotations

import pytest

from integrations.errors import UnknownProviderError
from integrations.registry import (
    PREFIXES,
    Candidate,
    adapter_for,
    default_model,
    provider_named,
    provider_title,
    providers,
    resolve,
    supported_prefixes,
    traits_of,
)
from tests.tables.cases import tabled


@pytest.mark.parametrize("provider", providers())
def test_adapter_for__every_name__its_own_adapter_made_once(provider: str) -> None:
    assert adapter_for(provider).provider == provider
    assert adapter_for(provider) is adapter_for(provider)
    assert traits_of(provider).provider == provider
    assert not traits_of(provider).base_url.endswith("/")


def test_adapter_for__unknown__refused_by_name() -> None:
    with pytest.raises(UnknownProviderError, match="'nobody'"):
        adapter_for("nobody")


@tabled
def test_resolve__model_and_enabled_providers__candidates_in_order(
    model: str, enabled: set[str], expected: list[tuple[str, str]]
) -> None:
    assert resolve(model, enabled) == [Candidate(*pair) for pair in expected]


@pytest.mark.parametrize(
    ("model", "enabled", "disabled", "expected"),
    [
        # A model of the vendor's switched-off integration must not go to a provider that serves any model.
        ("grok-4", {"openai_compatible"}, {"xai"}, []),
        ("grok-4", {"openai_compatible"}, set(), [("openai_compatible", "grok-4")]),
        ("grok-4", {"openai_compatible"}, {"openai"}, [("openai_compatible", "grok-4")]),
        ("gpt-4o", {"vllm", "openai_compatible"}, {"azure_openai"}, []),
        # Azure lists the model itself and may serve it while OpenAI is switched off; vLLM, which serves any model, may
        # not.
        ("gpt-4o", {"azure_openai", "vllm"}, {"openai"}, [("azure_openai", "gpt-4o")]),
        ("my-model", {"vllm"}, {"openai", "xai"}, [("vllm", "my-model")]),
        ("no-provider/my-model", {"vllm"}, {"openrouter", "groq"}, [("vllm", "no-provider/my-model")]),
        ("xai/grok-4", {"openrouter", "vllm"}, {"xai"}, []),
        ("vllm/grok-4", {"vllm"}, {"xai"}, [("vllm", "grok-4")]),
    ],
)
def test_resolve__provider_switched_off__hands_nothing_on(
    model: str, enabled: set[str], disabled: set[str], expected: list[tuple[str, str]]
) -> None:
    assert resolve(model, enabled, disabled) == [Candidate(*pair) for pair in expected]


@pytest.mark.parametrize("provider", providers())
def test_resolve__provider_and_model__nobody_else_whoever_is_enabled(provider: str) -> None:
    others = frozenset(providers()) - {provider}
    for name in ("gpt-4o", "claude-sonnet-5", "meta-llama/Llama-3", "openai/gpt-oss-20b", "anthropic.claude-x", "x"):
        assert resolve(f"{provider}/{name}", others) == []
        # The names of NVIDIA's own models begin with the vendor's name, so every name there has a slash.
        upstream = f"nvidia/{name}" if provider == "nvidia" and "/" not in name else name
        assert resolve(f"{provider}/{name}", {provider, *others}) == [Candidate(provider, upstream)]


@tabled
def test_resolve__id_of_bedrock__bedrock_alone(model: str) -> None:
    assert resolve(model, set(providers()) - {"sandbox"}) == [Candidate("bedrock", model)]


def test_supported_prefixes__each_once__known_providers_only() -> None:
    listed = [row.prefix for row in supported_prefixes()]
    assert len(listed) == len(set(listed))
    assert {f"{name}/" for name in providers()} <= set(listed)
    assert {provider for row in PREFIXES for provider in row.providers} <= set(providers())


def test_default_model__declared__resolves_to_its_provider() -> None:
    assert default_model("openai") == "gpt-4o-mini"
    assert default_model("vllm") == ""


def test_titles__each_once__name_their_provider() -> None:
    titles = [provider_title(name) for name in providers()]
    assert all(titles)
    assert len(set(titles)) == len(titles)
    for name, title in zip(providers(), titles, strict=True):
        assert provider_named(name.upper()) == provider_named(f" {title.lower()} ") == name
    assert provider_title("gone") == "gone"
    assert provider_named("") == provider_named("gone") == ""
