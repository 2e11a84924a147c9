"""The providers with a fake, and the requests and readers that the tests over all of them share."""

from __future__ import annotations

from typing import Any

from openai.types.chat import ChatCompletionMessageParam

from tests.fakes.dialects.registry import FAKES, distinct_providers

PROVIDERS = [provider for provider in distinct_providers() if provider in FAKES]
ASK: list[ChatCompletionMessageParam] = [{"role": "user", "content": "The weather in Oslo and Paris?"}]


def dropped(headers: Any) -> list[str]:
    """Returns the fields that the warning header names as dropped, without its note about a missing price."""
    warnings = headers.get("x-svc-warning", "").split("; ")
    return [warning for warning in warnings if warning and not warning.startswith("no price is known")]
