"""Asks a model that can reason for its reasoning, where the project wants to see it and the request leaves it open
(design, section 5, Settings: `introspection_enabled`, `thinking_budget_tokens`)."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from gateway.pipeline.context import Attempt, RequestContext, RequestState
from gateway.project_settings.settings import ReasoningSettings
from gateway.protocol.wire import ChatCompletionRequest, LazyFields
from integrations.capabilities.lookup import capabilities_of
from integrations.providers.errors import FailureKind, ProviderError

logger = logging.getLogger("gateway.request")

T = TypeVar("T")

INTROSPECTION = "introspection"
"""The attribute of a record whose answer was asked for its reasoning by the project: requested, or refused when the
provider took the request only without."""

# Null says it too; the vendors' own words for the same wish are passed on by their adapters.
_SPOKEN_OF = ("thinking", "reasoning_effort", "reasoning", "thinking_config", "enable_thinking", "chat_template_kwargs")


# Reasoning is part of what `max_tokens` allows, and the answer needs room as well.
_LEAST_ROOM, _AMPLE = 2048, 32_768


async def asked_with_reasoning(
    context: RequestContext, attempt: Attempt, state: RequestState, ask: Callable[[RequestContext], Awaitable[T]]
) -> T:
    """What `ask` gives for the request with the project's wish; for the request as it is where the provider refuses
    that: not every model takes a wish beside every parameter, and it is not the client's. Raises ProviderError."""
    wishing = with_reasoning(context, attempt, state)
    if wishing is context:
        return await ask(context)
    try:
        return await ask(wishing)
    except ProviderError as failure:
        # What the wish adds may be what made the request too long.
        if failure.kind not in (FailureKind.REJECTED, FailureKind.CONTEXT_LENGTH):
            raise
        logger.info("introspection.refused request_id=%s provider=%s", state.request_id, attempt.provider)
        if failure.status is not None:
            _note_refusal(state, attempt, failure, failure.status)
    state.attributes[INTROSPECTION] = "refused"
    return await ask(context)


def _note_refusal(state: RequestState, attempt: Attempt, failure: ProviderError, status: int) -> None:
    """The provider was called, so it stands in the record; no retry, since what is asked next is another request."""
    took = time.perf_counter() - state.asked_at
    state.note_failure(attempt, took, status=status, error=failure.kind.value, usage=failure.usage)
    state.asked_at = time.perf_counter()


def with_reasoning(context: RequestContext, attempt: Attempt, state: RequestState) -> RequestContext:
    """The request that `attempt` is to send. Only for projects with introspection."""
    request = context.request
    if request.thinking is not None or request.reasoning_effort is not None:
        return context
    limit = request.max_completion_tokens or request.max_tokens
    known = capabilities_of(attempt.provider, attempt.model)
    if (
        known is None
        or known.reasoning is not True
        or (limit is not None and limit < _LEAST_ROOM)
        or _forces_a_tool(request)
        or any(name in context.fields for name in _SPOKEN_OF)
    ):
        state.attributes.pop(INTROSPECTION, None)
        return context
    state.attributes[INTROSPECTION] = "requested"
    # Appended: whatever the client wrote stays as it is, byte for byte.
    wish = _wish(context.snapshot.settings.reasoning, limit)
    body = b'%b,"thinking":%b}' % (context.body.rstrip()[:-1], wish)
    return msgspec.structs.replace(context, body=body, fields=LazyFields(body))


def _forces_a_tool(request: ChatCompletionRequest) -> bool:
    """A model that has to call a tool has nothing to think over, and Claude refuses both at once."""
    return request.tool_choice is not None and request.tool_choice not in ("auto", "none")


def _wish(settings: ReasoningSettings, limit: int | None) -> bytes:
    budget = settings.budget_tokens
    if limit is not None and (budget or limit < _AMPLE):
        # Models that are left to themselves may take all of it.
        budget = min(budget or limit, limit // 2)
    if budget:
        return b'{"type":"enabled","budget_tokens":%d}' % budget
    return b'{"type":"enabled"}'
