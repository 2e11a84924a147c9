"""Requests for tools and reasoning that a provider gets by the Responses API (docs/providers/openai.md)."""

from __future__ import annotations

import msgspec

from gateway.pipeline.context import Attempt
from integrations.providers.base import ChatRequest
from integrations.providers.openai.responses_adapter import ADAPTERS


def by_responses(request: ChatRequest, attempt: Attempt) -> Attempt:
    """Returns the attempt with the adapter that asks by the Responses API where the request needs it."""
    adapter = ADAPTERS.get(attempt.provider)
    if adapter is None or not adapter.is_for(request, attempt.credentials):
        return attempt
    return msgspec.structs.replace(attempt, adapter=adapter)
