"""Requests reasoning from a model that can reason, if the project wants it and the request leaves it open.

The settings are `introspection_enabled` and `thinking_budget_tokens` (docs/settings.md).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from gateway.pipeline.context import Attempt, FailedCall, RequestContext, RequestState
from gateway.pipeline.native import without_native
from gateway.project_settings.settings import ProjectSettings
from gateway.protocol.wire import ChatCompletionRequest, LazyFields, Thinking
from integrations.capabilities.lookup import capabilities_of
from integrations.providers.errors import FailureKind, ProviderError

logger = logging.getLogger("gateway.request")

T = TypeVar("T")

INTROSPECTION = "introspection"
"""The attribute of a record for which the project's settings added the request for reasoning. Its value is `requested`,
or `refused` when the provider accepted the request only without it."""

# A request with one of these fields, null included, has chosen itself: these are the vendors' own names for the same
# choice, and their adapters pass them on.
_CHOICE_FIELDS = (
    "thinking",
    "reasoning_effort",
    "reasoning",
    "thinking_config",
    "enable_thinking",
    "chat_template_kwargs",
)

# The tokens of reasoning are part of `max_tokens`, and the answer needs room as well.
_MIN_ROOM_TOKENS, _AMPLE_TOKENS = 2048, 32_768


async def call_with_reasoning(
    context: RequestContext, attempt: Attempt, state: RequestState, call: Callable[[RequestContext], Awaitable[T]]
) -> T:
    """Calls with reasoning switched on; with the request as it is if the provider refuses that.

    Not every model accepts reasoning beside every parameter, and the client did not request it. Raises ProviderError.
    """
    changed = with_reasoning(context, attempt, state)
    if changed is context:
        return await call(context)
    try:
        return await call(changed)
    except ProviderError as failure:
        # The tokens of reasoning may be what made the request too long.
        if failure.kind not in (FailureKind.REJECTED, FailureKind.CONTEXT_LENGTH):
            raise
        logger.info("introspection.refused request_id=%s provider=%s", state.request_id, attempt.provider)
        if failure.status is not None:
            note_refusal(state, attempt, failure, failure.status)
    state.attributes[INTROSPECTION] = "refused"
    return await call(context)


def note_refusal(state: RequestState, attempt: Attempt, failure: ProviderError, status: int) -> None:
    seconds = time.perf_counter() - state.routing.called_at
    state.note_failure(attempt, FailedCall(seconds, status, failure.kind.value, failure.usage))
    state.routing.called_at = time.perf_counter()


def with_reasoning(context: RequestContext, attempt: Attempt, state: RequestState) -> RequestContext:
    request = context.request
    if request.thinking is not None or request.reasoning_effort is not None:
        return context
    limit = request.max_completion_tokens or request.max_tokens
    known = capabilities_of(attempt.provider, attempt.model)
    if (
        known is None
        or known.reasoning is not True
        or (limit is not None and limit < _MIN_ROOM_TOKENS)
        or _forces_a_tool(request)
        or any(name in context.fields for name in _CHOICE_FIELDS)
    ):
        state.attributes.pop(INTROSPECTION, None)
        return context
    state.attributes[INTROSPECTION] = "requested"
    # The field is appended: the client's own bytes stay as they are.
    thinking = _thinking(context.snapshot.settings, limit)
    body = b'%b,"thinking":%b}' % (context.body.rstrip()[:-1], thinking)
    request = msgspec.structs.replace(request, thinking=msgspec.json.decode(thinking, type=Thinking))
    return msgspec.structs.replace(without_native(context), body=body, request=request, fields=LazyFields(body))


def _forces_a_tool(request: ChatCompletionRequest) -> bool:
    """A model that has to call a tool has nothing to reason about, and Claude refuses both."""
    return request.tool_choice is not None and request.tool_choice not in ("auto", "none")


def _thinking(settings: ProjectSettings, limit: int | None) -> bytes:
    budget = settings.thinking_budget_tokens
    if limit is not None and (budget or limit < _AMPLE_TOKENS):
        # A model without a budget may spend all of the limit on its reasoning.
        budget = min(budget or limit, limit // 2)
    if budget:
        return b'{"type":"enabled","budget_tokens":%d}' % budget
    return b'{"type":"enabled"}'
