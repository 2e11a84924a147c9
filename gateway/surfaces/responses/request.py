"""Translates a request of the Responses API to a chat completion
(https://platform.openai.com/docs/api-reference/responses/create)."""

from __future__ import annotations

from typing import Any

import msgspec

from core.errors import ValidationError
from gateway.errors import UnsupportedError
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.checks import decoded
from gateway.surfaces.responses.items import Conversation
from gateway.surfaces.responses.plain import plain_chat
from gateway.surfaces.responses.tools import Toolbox, chat_tool_choice
from integrations.registry import owner_of

Json = dict[str, Any]

# These fields mean the same in both protocols, or are the gateway's own.
_SAME = frozenset(
    {
        "model",
        "temperature",
        "top_p",
        "parallel_tool_calls",
        "metadata",
        "user",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "service_tier",
        "stream",
        "models",
        "provider",
        "prompt_config",
        "prompt_variables",
    }
)
# These fields ask for state that a provider keeps between requests.
_STATEFUL = frozenset({"previous_response_id", "conversation", "background", "prompt"})
# Most requests have none of these fields.
_WITH_OTHER_NAMES = frozenset({"include", "reasoning", "text", "top_logprobs"})
_INCLUDE_LOGPROBS = "message.output_text.logprobs"
_encode = msgspec.json.Encoder().encode


def read(body: bytes) -> SurfaceRequest:
    """Returns the request as a chat completion. Raises ValidationError (400), which names the client's field."""
    fields = decoded(body)
    plain = plain_chat(fields)
    if plain is not None:
        return SurfaceRequest(_encode(plain), echo=fields, fields=plain, is_plain=True, is_translated=True)
    return translated(fields)


def translated(fields: Json) -> SurfaceRequest:
    """Returns the request with these fields. Raises ValidationError."""
    untranslatable = _stateful(fields)
    is_stateful = bool(untranslatable)
    toolbox = Toolbox.of(fields)
    messages = _messages(fields, toolbox, untranslatable)
    chat: Json = {name: value for name, value in fields.items() if name in _SAME and value is not None}
    chat["messages"] = messages
    if fields.get("max_output_tokens") is not None:
        chat["max_completion_tokens"] = fields["max_output_tokens"]
    chat |= _tools(fields, toolbox, untranslatable)
    if "tools" not in chat:
        chat.pop("parallel_tool_calls", None)  # OpenAI and others refuse the field without tools.
    if not _WITH_OTHER_NAMES.isdisjoint(fields):
        chat |= _renamed(fields) | _format(fields)
    return SurfaceRequest(
        _encode(chat),
        tuple(untranslatable),
        fields,
        is_stateful=is_stateful,
        fields=chat,
        is_translated=True,
        warnings=tuple(toolbox.warnings),
    )


def _stateful(fields: Json) -> list[str]:
    """Returns the fields that only the provider can serve that keeps their state. Raises UnsupportedError (400) unless
    the request names that one provider."""
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
    """Returns the fields that have another name and another shape in a chat completion."""
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
