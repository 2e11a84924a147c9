"""Keys whose patterns of providers name one of several deployments."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

import pytest

from core.keys.patterns import permits
from core.keys.services import KeyRecord
from gateway.pipeline.context import Attempt
from gateway.pipeline.permitted import permitted


@pytest.mark.parametrize(
    ("patterns", "deployment", "is_permitted"),
    [
        (("openai-eu",), "openai-eu", True),
        (("openai-eu",), "openai-us", False),
        (("openai-eu",), "", False),
        (("openai",), "openai-us", True),
        (("groq",), "openai-eu", False),
        (("open*",), "secret", True),
        (("openai/*-eu",), "openai-eu", True),
        (("openai/*-eu",), "openai-us", False),
        (("*/*-eu",), "openai-eu", True),
        (("openai/openai",), "", True),
        (("openai/openai-eu",), "", False),
        (("groq/*",), "openai-eu", False),
        # A wildcard does not reach across the slash.
        (("*eu",), "openai-eu", False),
        (("*/a/openai-eu",), "openai-eu", False),
    ],
)
def test_patterns_of_providers__several_deployments__match_their_names(
    patterns: tuple[str, ...], deployment: str, is_permitted: bool
) -> None:
    assert permits((), patterns, "openai", "gpt-4o", deployment) is is_permitted


@pytest.mark.parametrize(
    "pattern", ["openai*", "openai-*", "openai-?ecret", "*secret", "*-*", "[o]penai-secret", "openai/*"]
)
def test_patterns_with_wildcards__deployment_of_another_provider__is_not_opened_by_its_name(pattern: str) -> None:
    assert not permits((), (pattern,), "anthropic", "claude-sonnet-4-5", "openai-secret")


def test_pattern_without_wildcard__deployment_of_that_name__is_opened_whatever_its_provider() -> None:
    assert permits((), ("openai-secret",), "anthropic", "claude-sonnet-4-5", "openai-secret")


def test_patterns_of_models__named_deployment__still_exclude() -> None:
    assert not permits(("o3",), ("openai-eu",), "openai", "gpt-4o", "openai-eu")


def test_attempts__key_of_one_deployment__are_those_of_the_deployment() -> None:
    key = KeyRecord(1, UUID(int=1), "", frozenset(), None, allowed_providers=("openai-eu",))
    nothing = cast("Any", None)
    attempts = [
        Attempt("openai", "gpt-4o", nothing, nothing, nothing, deployment=name, is_fallback=name == "openai-eu")
        for name in ("openai-us", "openai-eu")
    ]

    found = permitted(key, "gpt-4o", attempts)

    assert [(one.deployment, one.is_fallback) for one in found] == [("openai-eu", False)]
