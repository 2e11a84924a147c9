"""Stage 3: managed prompts (docs/prompts.md).

A config is injected only if the request names it and has no system message of its own. Any other request goes on as it
came, and `x-svc-warning` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.request_log.marks import HEADER_VARIABLES, NO_STORE, SET
from gateway.errors import PromptConfigNotFoundError
from gateway.pipeline.context import Origin, RequestContext, RequestState
from gateway.pipeline.pin import is_pinned, named_prompt, pin
from gateway.pipeline.rebuild import PromptMessages, rebuilt
from gateway.pipeline.variant import version_for
from gateway.protocol.wire import ChatCompletionRequest
from gateway.snapshot.prompts import ManagedPrompt, PromptUse
from gateway.snapshot.store import SnapshotStore
from prompts.selectors import PromptVersionRecord

# Clients choose the names of prompt configs that they send, so an error quotes no more than these characters of a name.
_MAX_QUOTED_CHARACTERS = 100
INCLUDED = "prompt_included"
"""The attribute of a record that names the versions which the managed prompt included."""
_MAX_CACHED_TEXTS, _MAX_CACHED_CHARACTERS = 100, 10_000
_CLIENTS = Origin().source
_NONE_NAMED = "explicit mode with no prompt_config sent: no managed prompt was used"


async def prompted(snapshots: SnapshotStore, context: RequestContext, state: RequestState) -> RequestContext:
    if is_pinned(context):
        await pin(snapshots, context, state)
    return with_prompt(context, state)


def with_prompt(context: RequestContext, state: RequestState) -> RequestContext:
    """Injects the prompt that the request names, if any, and notes its version in `state.prompt`.

    Raises PromptConfigNotFoundError (404), BrokenIncludeError (409), VariableError (422).
    """
    if context.native is not None and context.native.surface.native_only:
        if context.headers.prompt_config:
            state.warnings = (f"managed prompts do not apply to {state.surface.operation}",)
        return context
    request, prompts = context.request, context.snapshot.prompts
    # The name in the body wins over the header, as with variables.
    name = request.prompt_config or context.headers.prompt_config
    if not name:
        if prompts and not _is_declined(context) and not _has_system_message(request):
            state.warnings = (_NONE_NAMED,)
        return context
    prompt = named_prompt(prompts, name)
    if prompt is None:
        raise PromptConfigNotFoundError(f"The project has no prompt config named {name[:_MAX_QUOTED_CHARACTERS]!r}")
    if _has_system_message(request):
        return _skipped(context, state, prompt, "the request has a system message")
    if state.origin.pinned is not None:
        version = state.origin.pinned
        state.prompt = PromptUse(prompt.config_id, prompt.name, version.number)
    elif prompt.rollout is not None and prompt.rollout.paused:
        return _skipped(context, state, prompt, "its rollout is paused")
    elif prompt.active is None:
        return _skipped(context, state, prompt, "it has no version yet")
    else:
        version = version_for(prompt, prompt.active, context, state)
    changed = rebuilt(context, version, messages_of(prompt, version, variables_of(context)))
    state.injected_bytes = len(changed.body) - len(context.body)
    _note(context, state, version)
    return changed


def _note(context: RequestContext, state: RequestState, version: PromptVersionRecord) -> None:
    if version.included:
        state.attributes[INCLUDED] = ", ".join(f"{name}@{number}" for (_, name), number in version.included.items())
    headers = context.headers
    if headers.variables:
        state.attributes[HEADER_VARIABLES] = SET
    # The service's own requests take nothing from the cache, which says nothing about what may be kept.
    if headers.cache_control and state.origin.source == _CLIENTS and "no-store" in headers.cache_control.lower():
        state.attributes[NO_STORE] = SET


def _is_declined(context: RequestContext) -> bool:
    return context.request.prompt_config == "" or context.headers.prompt_config == ""


def _skipped(context: RequestContext, state: RequestState, prompt: ManagedPrompt, reason: str) -> RequestContext:
    state.prompt = PromptUse(prompt.config_id, prompt.name)
    state.warnings = (f"prompt config {prompt.name!r} was skipped: {reason}",)
    return context


def _has_system_message(request: ChatCompletionRequest) -> bool:
    # A generator costs more than the whole loop does for most conversations.
    for message in request.messages:  # noqa: SIM110
        if message.role in ("system", "developer"):
            return True
    return False


def messages_of(
    prompt: ManagedPrompt, version: PromptVersionRecord, values: Mapping[str, Any]
) -> PromptMessages | None:
    """Returns None if all texts of the prompt are empty. Raises VariableError.

    Short texts are cached: many prompts have no variables, or the same ones in request after request.
    """
    for value in values.values():
        if value.__class__ is not str:
            # As keys of the cache, 1, 1.0 and true are equal; as texts they differ.
            return _rendered(prompt, version, values)
    key = (version.number, *values, *values.values())
    messages: PromptMessages | None = prompt.rendered.get(key)
    if messages is None:
        messages = _rendered(prompt, version, values)
        if messages is not None and len(messages.json) + sum(map(len, values.values())) <= _MAX_CACHED_CHARACTERS:
            if len(prompt.rendered) >= _MAX_CACHED_TEXTS:
                prompt.rendered.clear()
            prompt.rendered[key] = messages
    return messages


def _rendered(prompt: ManagedPrompt, version: PromptVersionRecord, values: Mapping[str, Any]) -> PromptMessages | None:
    messages = version.messages(values, tolerated=prompt.names)
    return PromptMessages(messages) if messages else None


def variables_of(context: RequestContext) -> Mapping[str, Any]:
    of_headers, of_body = context.headers.variables, context.request.prompt_variables
    if not of_body:
        return of_headers
    return {**of_headers, **of_body} if of_headers else of_body
