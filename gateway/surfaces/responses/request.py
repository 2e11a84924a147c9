"""https://platform.openai.com/docs/api-reference/responses/create"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from core.errors import ValidationError
from gateway.errors import UnsupportedError
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.checks import Json, decoded
from gateway.surfaces.responses import compaction
from gateway.surfaces.responses.items import Conversation
from gateway.surfaces.responses.plain import plain_chat
from gateway.surfaces.responses.tools import Toolbox, chat_tool_choice
from integrations.registry import owner_of

# These fields are read here, or say nothing about the answer. All others go into the chat completion: they mean the
# same there, as the gateway's own do, or the provider's adapter names what its vendor does not have.
_READ = frozenset(
    {
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "reasoning",
        "store",
        "stream_options",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
    }
)
# These fields ask for state that a provider keeps between requests.
_STATEFUL = frozenset({"previous_response_id", "conversation", "background", "prompt"})
# The answer to a request with one of these would be of another kind, and the value in brackets asks for nothing.
_OF_CHAT = {
    "modalities": (["text"], "a response is a text"),
    "n": (1, "there is one response to a request"),
    "response_format": ({"type": "text"}, "the Responses API has the form in text.format"),
}
# OpenAI's Responses API alone has these fields, and the value asks for nothing.
_OF_RESPONSES: Json = {
    "background_options": None,
    "context_management": [],
    "max_tool_calls": None,
    "truncation": "disabled",
}
_KEPT_INSIDE = {"reasoning": {"effort", "generate_summary", "summary"}, "text": {"format", "verbosity"}}
# Most requests have none of these fields.
_WITH_OTHER_NAMES = frozenset({"include", "reasoning", "text", "top_logprobs"})
_INCLUDE_LOGPROBS = "message.output_text.logprobs"
_INCLUDED = (_INCLUDE_LOGPROBS, "reasoning.encrypted_content")
_RARE = _OF_CHAT.keys() | _OF_RESPONSES.keys() | _KEPT_INSIDE.keys() | {"include", "store"}
_NOT_PASSED = _READ | _STATEFUL | _OF_CHAT.keys() | _OF_RESPONSES.keys()
_encode = msgspec.json.Encoder().encode


def read(body: bytes) -> SurfaceRequest:
    """Raises ValidationError (400), which names the client's field."""
    fields = decoded(body)
    plain = plain_chat(fields)
    if plain is not None:
        return SurfaceRequest(_encode(plain), echo=fields, fields=plain, is_plain=True, is_translated=True)
    return translated(fields)


def translated(fields: Json) -> SurfaceRequest:
    untranslatable = _stateful(fields)
    is_stateful = bool(untranslatable)
    toolbox = Toolbox.of(fields)
    messages = _messages(fields, toolbox, untranslatable)
    chat: Json = {name: value for name, value in fields.items() if value is not None and name not in _NOT_PASSED}
    chat["messages"] = messages
    if fields.get("max_output_tokens") is not None:
        chat["max_completion_tokens"] = fields["max_output_tokens"]
        chat.pop("max_tokens", None)
    warnings = toolbox.warnings
    if not _RARE.isdisjoint(fields):
        untranslatable += _of_another_kind(fields)
        warnings = [*warnings, *_dropped(fields)]
    chat |= _tools(fields, toolbox, untranslatable)
    if "tools" not in chat:
        chat.pop("parallel_tool_calls", None)  # OpenAI and others refuse the field without tools.
    if not _WITH_OTHER_NAMES.isdisjoint(fields):
        chat |= _renamed(fields) | _format(fields)
    if messages[-1] is compaction.REQUEST:
        # The history may hold calls, for which some vendors want the tools.
        chat |= {"tool_choice": "none"} if "tools" in chat else {}
        for name in ("response_format", "web_search_options"):
            chat.pop(name, None)
    return SurfaceRequest(
        _encode(chat),
        tuple(untranslatable),
        fields,
        is_stateful=is_stateful,
        fields=chat,
        is_translated=True,
        warnings=tuple(warnings),
    )


def _stateful(fields: Json) -> list[str]:
    """The fields that only the provider with their state can serve. Raises UnsupportedError (400) unless the request
    names that one provider."""
    if _STATEFUL.isdisjoint(fields):
        return []
    used = [name for name in fields if name in _STATEFUL and fields[name]]
    if used and not _names_one_provider(fields):
        raise UnsupportedError(
            f"{used[0]}: the gateway keeps no responses; send the whole conversation in input, or name the one provider"
            " that keeps them in provider.only or in model"
        )
    if "background" in used and not fields.get("stream"):
        raise UnsupportedError("background: the gateway keeps no responses, so it needs stream: true")
    return [f"{name}: only a provider that keeps responses can serve it" for name in used]


def _of_another_kind(fields: Json) -> list[str]:
    return [
        f"{name}: {problem}" for name, (usual, problem) in _OF_CHAT.items() if fields.get(name) not in (None, usual)
    ]


def _dropped(fields: Json) -> Iterator[str]:
    names = [name for name, usual in _OF_RESPONSES.items() if fields.get(name) not in (None, usual)]
    for outer, kept in _KEPT_INSIDE.items():
        inside = fields.get(outer)
        if isinstance(inside, dict):
            names += [f"{outer}.{name}" for name, value in inside.items() if name not in kept and value is not None]
    include = fields.get("include")
    if isinstance(include, list):
        names += [f"include.{name}" for name in include if name not in _INCLUDED]
    yield from (f"{name}: dropped, a chat completion has no counterpart" for name in names)
    if fields.get("store"):
        yield "store: dropped, the gateway keeps no responses"


def _names_one_provider(fields: Json) -> bool:
    preferences, model = fields.get("provider"), fields.get("model")
    only = preferences.get("only") if isinstance(preferences, dict) else None
    return (isinstance(only, list) and len(only) == 1) or (isinstance(model, str) and bool(owner_of(model)))


def _messages(fields: Json, toolbox: Toolbox, untranslatable: list[str]) -> list[Json]:
    found, conversation = fields.get("input"), Conversation(toolbox)
    if (instructions := fields.get("instructions")) is not None:
        conversation.messages += _instructions(instructions)
    if isinstance(found, str):
        conversation.messages.append({"role": "user", "content": found})
    elif isinstance(found, list):
        for index, item in enumerate(found):
            if not conversation.add_plain(item):
                conversation.add(item, f"input[{index}]")
    elif found is not None:
        raise ValidationError("input: expected a string or a list")
    if not found and not untranslatable:
        raise ValidationError("input: this field is required", code="missing_field")
    for message in conversation.messages:
        if message["role"] == "assistant":
            message.setdefault("content", None)
    untranslatable += conversation.untranslatable
    return conversation.messages or [{"role": "user", "content": ""}]


def _instructions(instructions: Any) -> list[Json]:
    if not isinstance(instructions, str):
        raise ValidationError("instructions: expected a string")
    return [{"role": "system", "content": instructions}] if instructions else []


def _tools(fields: Json, toolbox: Toolbox, untranslatable: list[str]) -> Json:
    untranslatable += toolbox.untranslatable
    chat: Json = {}
    if toolbox.functions:
        chat["tools"] = list(toolbox.functions.values())
    if toolbox.search is not None:
        chat["web_search_options"] = toolbox.search
    if fields.get("tool_choice") is not None:
        choice = chat_tool_choice(fields["tool_choice"], toolbox, untranslatable)
        if choice is not None and ("tools" in chat or choice == "none"):
            chat["tool_choice"] = choice
    return chat


def _renamed(fields: Json) -> Json:
    chat: Json = {}
    reasoning = fields.get("reasoning")
    if isinstance(reasoning, dict) and reasoning.get("effort") is not None:
        chat["reasoning_effort"] = reasoning["effort"]
    text = fields.get("text")
    if isinstance(text, dict) and text.get("verbosity") is not None:
        chat["verbosity"] = text["verbosity"]
    include = fields.get("include") or ()
    if fields.get("top_logprobs") or _INCLUDE_LOGPROBS in include:
        chat |= {"logprobs": True, "top_logprobs": fields.get("top_logprobs") or 0}
    return chat


def _format(fields: Json) -> Json:
    text = fields.get("text")
    form = text.get("format") if isinstance(text, dict) else None
    if form is None:
        return {}
    if not isinstance(form, dict):
        raise ValidationError("text.format: expected an object")
    if form.get("type") != "json_schema":
        return {"response_format": {"type": form.get("type")}} if form.get("type") != "text" else {}
    if not isinstance(form.get("schema"), dict):
        raise ValidationError("text.format.schema: this field is required", code="missing_field")
    schema = {name: value for name, value in form.items() if name != "type"}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}
