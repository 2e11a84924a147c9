"""Requests that a provider gets by the Responses API (docs/providers/openai.md#tools-with-reasoning)."""

from __future__ import annotations

import msgspec

from gateway.pipeline.context import Attempt
from integrations.providers.base import ChatRequest
from integrations.providers.errors import ProviderError
from integrations.providers.openai.responses_adapter import ADAPTERS, ResponsesAdapter


def by_responses(request: ChatRequest, attempt: Attempt) -> Attempt:
    adapter = ADAPTERS.get(attempt.provider)
    if adapter is None or not adapter.is_for(request, attempt.credentials):
        return attempt
    return msgspec.structs.replace(attempt, adapter=adapter)


def amended_request(request: ChatRequest, attempt: Attempt, failure: ProviderError) -> ChatRequest | None:
    """Drops what the provider refused and the client did not write for this API; None if the client must see it."""
    return attempt.adapter.amended(request, failure) if isinstance(attempt.adapter, ResponsesAdapter) else None
