"""Keys whose patterns of providers name one of several deployments."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

import pytest

from core.key_patterns import permits
from core.keys import KeyRecord
from gateway.pipeline.context import Attempt
from gateway.pipeline.permitted import permitted


@pytest.mark.parametrize(
    ("patterns", "deployment", "is_permitted"),
    [
        (("openai-eu",), "openai-eu", True),
        (("*-eu",), "openai-eu", True),
        (("openai-eu",), "openai-us", False),
        (("openai-eu",), "", False),
        (("openai",), "openai-us", True),
        (("groq",), "openai-eu", False),
    ],
)
def test_patterns_of_providers__several_deployments__match_their_names(
    patterns: tuple[str, ...], deployment: str, is_permitted: bool
) -> None:
    assert permits((), patterns, "openai", "gpt-4o", deployment) is is_permitted


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
