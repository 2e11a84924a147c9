"""Puts a managed prompt into a request. Messages are copied as bytes and never decoded again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from gateway.pipeline.context import NativeRequest, RequestContext
from gateway.protocol.wire import AUTO, ChatCompletionRequest, JsonObject, LazyFields, Message, ResponseFormat
from prompts.content.messages import PromptMessage
from prompts.selectors import PromptVersionRecord

# The values are typed Any instead of Raw: new values stand beside bytes that stay, and the encoder takes both.
_decode: Callable[[bytes], dict[str, Any]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


_FORWARDED = frozenset({"model", "messages"})


class PromptMessages:
    __slots__ = ("json", "messages", "rendered")

    def __init__(self, rendered: Sequence[PromptMessage]) -> None:
        self.rendered = rendered
        self.messages = msgspec.convert(rendered, list[Message])
        self.json = b"%b," % _encode(rendered)[:-1]


def rebuilt(context: RequestContext, version: PromptVersionRecord, prompt: PromptMessages | None) -> RequestContext:
    """Puts the prompt's messages before all others, and adds the version's parameters that the request leaves out.

    Body, decoded fields and request object agree; the fields that concern only the gateway are gone.
    """
    request = context.request
    fields = _decode(context.body)
    fields.pop("prompt_config", None)
    fields.pop("prompt_variables", None)
    changes = _defaults(request, version, legacy="functions" in fields)
    if changes:
        fields.update(changes)
        for name, stored in (("tools", version.tools), ("response_format", version.response_format)):
            if name in changes and stored is not None:
                fields[name] = msgspec.Raw(stored)
    if prompt is not None:
        changes["messages"] = [*prompt.messages, *request.messages]
        # The slice is of a view: conversations are long, and a slice of bytes would copy them twice more.
        fields["messages"] = msgspec.Raw(b"".join((prompt.json, memoryview(fields["messages"])[1:])))
    body = _encode(fields)
    changed = msgspec.structs.replace(request, **changes) if changes else request
    native = None if context.native is None else _native(context.native, prompt, changes)
    return RequestContext(context.snapshot, context.headers, body, changed, LazyFields(body), native)


def _native(native: NativeRequest, prompt: PromptMessages | None, changes: Collection[str]) -> NativeRequest:
    """Other additions have a form in chat completions only, and the model's name is not forwarded."""
    body = native.body
    if body is not None and prompt is not None:
        body = native.surface.with_prompt(body, prompt.rendered)
    return msgspec.structs.replace(native, body=body if _FORWARDED.issuperset(changes) else None)


def _defaults(request: ChatCompletionRequest, version: PromptVersionRecord, *, legacy: bool) -> dict[str, Any]:
    """Returns the fields that the version adds, by name. A field that is null counts as left out.

    `legacy`: the request has `functions`, the older form of tools; providers refuse both at once.
    """
    added: dict[str, Any] = {}
    if version.model and request.model == AUTO:
        added["model"] = version.model
    if version.temperature is not None and request.temperature is None:
        added["temperature"] = version.temperature
    if version.max_tokens is not None and request.max_tokens is None and request.max_completion_tokens is None:
        added["max_tokens"] = version.max_tokens
    if version.tools is not None and request.tools is None and not legacy:
        added["tools"] = _tools(version.tools)
    if version.response_format is not None and request.response_format is None:
        added["response_format"] = _response_format(version.response_format)
    return added


@lru_cache(maxsize=1024)
def _tools(raw: bytes) -> list[JsonObject]:
    return msgspec.json.decode(raw, type=list[JsonObject])


@lru_cache(maxsize=1024)
def _response_format(raw: bytes) -> ResponseFormat:
    return msgspec.json.decode(raw, type=ResponseFormat)
