from __future__ import annotations

import pytest

from integrations.errors import UnknownProviderError
from integrations.registry import (
    PREFIXES,
    Candidate,
    adapter_for,
    default_model,
    providers,
    resolve,
    supported_prefixes,
    traits_of,
)


@pytest.mark.parametrize("provider", providers())
def test_adapter_for__every_name__its_own_adapter_made_once(provider: str) -> None:
    assert adapter_for(provider).provider == provider
    assert adapter_for(provider) is adapter_for(provider)
    assert traits_of(provider).provider == provider
    assert not traits_of(provider).base_url.endswith("/")


def test_adapter_for__unknown__refused_by_name() -> None:
    with pytest.raises(UnknownProviderError, match="'nobody'"):
        adapter_for("nobody")


@pytest.mark.parametrize(
    ("model", "enabled", "expected"),
    [
        ("gpt-4o", {"openai", "groq"}, [("openai", "gpt-4o")]),
        ("gpt-4o", {"azure_openai", "openai"}, [("openai", "gpt-4o"), ("azure_openai", "gpt-4o")]),
        ("openai/gpt-4o", {"openai", "openrouter"}, [("openai", "gpt-4o")]),
        ("openai/gpt-4o", {"openrouter"}, [("openrouter", "openai/gpt-4o")]),
        ("openai/gpt-4o", {"groq"}, []),
        ("groq/openai/gpt-oss-20b", {"groq"}, [("groq", "openai/gpt-oss-20b")]),
        ("sandbox/echo", {"sandbox"}, [("sandbox", "echo")]),
        ("sandbox/echo", {"openai"}, []),
        ("anthropic/claude-x", {"openrouter"}, [("openrouter", "anthropic/claude-x")]),
        ("gpt-oss-120b", {"openai", "groq"}, [("groq", "gpt-oss-120b")]),
        ("o3-mini", {"openai"}, [("openai", "o3-mini")]),
        ("sonar", {"perplexity"}, [("perplexity", "sonar")]),
        (
            "my-model",
            {"openai", "vllm", "openai_compatible"},
            [("openai_compatible", "my-model"), ("vllm", "my-model")],
        ),
        ("gpt-4o", {"openai_compatible"}, [("openai_compatible", "gpt-4o")]),
        ("gpt-4o", {"openai", "openai_compatible"}, [("openai", "gpt-4o")]),
        ("gpt-4o", set(), []),
        ("", {"openai"}, []),
        ("openai/", {"openai"}, []),
    ],
)
def test_resolve__model_and_enabled_providers__candidates_in_order(
    model: str, enabled: set[str], expected: list[tuple[str, str]]
) -> None:
    assert resolve(model, enabled) == [Candidate(*pair) for pair in expected]


def test_supported_prefixes__each_once__known_providers_only() -> None:
    listed = [row.prefix for row in supported_prefixes()]
    assert len(listed) == len(set(listed))
    assert {f"{name}/" for name in providers()} <= set(listed)
    assert {provider for row in PREFIXES for provider in row.providers} <= set(providers())


def test_default_model__declared__resolves_to_its_provider() -> None:
    assert default_model("openai") == "gpt-4o-mini"
    assert default_model("vllm") == ""
