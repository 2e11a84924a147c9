"""Asks a model that can reason for its reasoning, where the project wants to see it and the request leaves it open
(design, section 5, Settings: `introspection_enabled`, `thinking_budget_tokens`)."""

from __future__ import annotations

import msgspec

from gateway.pipeline.context import Account, Attempt, RequestContext
from gateway.snapshot.settings import ReasoningSettings
from gateway.wire import LazyFields
from integrations.capabilities import capabilities_of

INTROSPECTION = "introspection"
"""The attribute of a record whose answer was asked for its reasoning by the project."""

# Null says it too; the vendors' own words for the same wish are passed on by their adapters.
_SPOKEN_OF = ("thinking", "reasoning_effort", "reasoning", "thinking_config", "enable_thinking", "chat_template_kwargs")


def with_reasoning(context: RequestContext, attempt: Attempt, account: Account) -> RequestContext:
    """The request that `attempt` is to send. Only for projects with introspection."""
    request = context.request
    if request.thinking is not None or request.reasoning_effort is not None:
        return context
    known = capabilities_of(attempt.provider, attempt.model)
    if known is None or known.reasoning is not True or any(name in context.fields for name in _SPOKEN_OF):
        account.attributes.pop(INTROSPECTION, None)
        return context
    account.attributes[INTROSPECTION] = "requested"
    # Appended: whatever the client wrote stays as it is, byte for byte.
    wish = _wish(context.snapshot.settings.reasoning)
    body = b'%b,"thinking":%b}' % (context.body.rstrip()[:-1], wish)
    return msgspec.structs.replace(context, body=body, fields=LazyFields(body))


def _wish(settings: ReasoningSettings) -> bytes:
    if settings.budget_tokens:
        return b'{"type":"enabled","budget_tokens":%d}' % settings.budget_tokens
    return b'{"type":"enabled"}'
