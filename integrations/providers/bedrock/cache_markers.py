"""Adds cache points to a request of Converse
(https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html)."""

from __future__ import annotations

from typing import Any

from integrations.providers.base import ChatRequest
from integrations.providers.bedrock.models import Model
from integrations.providers.common.cache_markers import claude_min_tokens, has_own_markers, is_long_enough

_POINT = {"cachePoint": {"type": "default"}}
_NOVA_MIN_TOKENS = 1000
# A cache point stands behind these blocks: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html
_MARKED = frozenset({"text", "image", "document", "toolUse", "toolResult"})


def wants_points(request: ChatRequest, model: Model) -> bool:
    """Returns whether the project asks for markers, the model takes them, the client has set none, and the request is
    long enough."""
    if not request.cache_markers or not model.vendor or not model.caches_messages or has_own_markers(request.body):
        return False
    min_tokens = claude_min_tokens(model.family, model.version) if model.is_claude else _NOVA_MIN_TOKENS
    return is_long_enough(request.body, min_tokens)


def add_points(body: dict[str, Any], model: Model) -> None:
    """Puts cache points behind tools, system and turns of a request."""
    if model.caches_tools and "toolConfig" in body:
        body["toolConfig"]["tools"] = [*body["toolConfig"]["tools"], _POINT]
    if "system" in body:
        body["system"] = [*body["system"], _POINT]
    messages = body["messages"]
    before = [message for message in messages[:-1] if message["role"] == "user"]
    for message in (*before[-1:], messages[-1]):
        if not _MARKED.isdisjoint(message["content"][-1]):
            message["content"] = [*message["content"], _POINT]
