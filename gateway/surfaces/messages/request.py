"""https://platform.claude.com/docs/en/api/messages/create"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.checks import (
    Json,
    as_object,
    decoded,
    field_of,
    invalid,
    missing,
    optional_flag,
    optional_integer,
    optional_list,
    optional_object,
    optional_share,
    optional_text,
    required_name,
    required_object,
)
from gateway.surfaces.messages.conversation import read_messages, read_system
from gateway.surfaces.messages.plain import plain_chat
from gateway.surfaces.messages.search import search_options
from gateway.surfaces.tool_names import fit_names
from integrations.providers.anthropic.native import FIELDS
from integrations.providers.common.parameters import EFFORTS, THINKING_OFF

_SCHEMA = "json_schema"
# Chat completions require a name for the format of an answer, which the Messages API does not have.
_SCHEMA_NAME = "answer"
_MAX_WORD = 64


def read_output(fields: Json, untranslatable: list[str]) -> Json:
    """Returns those of `thinking`, `reasoning_effort`, `response_format` and the rest of `output_config` that the
    request has. Raises ValidationError."""
    thinking = _thinking(fields)
    config = dict(optional_object(fields, "output_config") or {})
    effort = optional_text(config, "effort", "output_config")
    config.pop("effort", None)
    form = _format(config.pop("format", None), "output_config.format", untranslatable)
    older = _format(fields.get("output_format"), "output_format", untranslatable)
    made: Json = {
        "thinking": thinking,
        "reasoning_effort": _effort(effort, thinking, untranslatable),
        "response_format": form or older,
        "output_config": {name: value for name, value in config.items() if value is not None} or None,
    }
    return {name: value for name, value in made.items() if value is not None}


def _thinking(fields: Json) -> Json | None:
    thinking = optional_object(fields, "thinking")
    if thinking is None:
        return None
    if len(required_name(thinking, "type", "thinking")) > _MAX_WORD:
        raise invalid("thinking.type", "this type is not known")
    optional_integer(thinking, "budget_tokens", "thinking", minimum=0)
    return thinking


def _effort(effort: str | None, thinking: Json | None, untranslatable: list[str]) -> str | None:
    """Returns the level of reasoning; None where thinking is off, since it is a level of thinking in a chat
    completion."""
    if effort is None or (thinking is not None and thinking["type"] in THINKING_OFF):
        return None
    if effort not in EFFORTS:
        untranslatable.append("output_config.effort: a chat completion has no such level")
        return None
    return effort


def _format(form: Any, place: str, untranslatable: list[str]) -> Json | None:
    if form is None:
        return None
    if not isinstance(form, dict):
        raise invalid(place, "expected an object")
    kind = required_name(form, "type", place)
    if kind != _SCHEMA:
        untranslatable.append(f"{place}: a chat completion has no format of type {kind}")
        return None
    schema = required_object(form, "schema", place)
    return {"type": _SCHEMA, "json_schema": {"name": _SCHEMA_NAME, "schema": schema, "strict": True}}


# The gateway acts on these fields itself, under the names that they have in a chat completion.
_OF_THE_GATEWAY = ("models", "provider", "prompt_config", "prompt_variables")
_PASSED = frozenset({*FIELDS, *_OF_THE_GATEWAY, "betas"})
_OF_OUTPUT = frozenset({"output_config", "output_format", "thinking"})
_READ_TOGETHER = _OF_OUTPUT | {"messages", "metadata", "model", "system", "tool_choice", "tools"}
# These fields concern the answer, which a request to count tokens has none of.
_OF_ANSWERS = frozenset({"max_tokens", "output_config", "output_format", "stream"})
# A request with one of these fields uses something that other vendors do not have; `global` is the usual place.
_ONLY_ANTHROPICS = {
    "container": "a chat completion has no container",
    "inference_geo": "only Anthropic's hosts choose the place of inference",
    "mcp_servers": "only Anthropic's hosts call MCP servers",
    "thread": "only Anthropic's hosts keep a conversation",
}
_USUAL_GEO = "global"
_MAX_TOKENS = 1_000_000
# Chat completions call Anthropic's `standard_only` the default tier.
_TIERS = {"standard_only": "default"}

_encode = msgspec.json.Encoder().encode


# Reads who asks, and in which session, from `metadata.user_id`.
#
# Claude Code puts both into this one field: `user_<hash>_account_<uuid>_session_<uuid>`, in newer versions the JSON of
# an object with `device_id`, `account_uuid` and `session_id`.

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_WITH_SESSION = re.compile(rf"(?P<user>.+?)_session_(?P<session>{_UUID})")


_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_TRANSLATED = frozenset({"type", "name", "description", "input_schema", "strict"})
# Code that Anthropic runs may call a tool; `direct` is the model's own call.
_DIRECT = "direct"
# https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool
_SEARCH = "web_search_"


def read_tools(fields: Json, untranslatable: list[str], warnings: list[str]) -> Json:
    made: list[Json] = []
    search: Json = {}
    for number, value in enumerate(optional_list(fields, "tools") or []):
        place = f"tools[{number}]"
        tool = as_object(value, place)
        if str(tool.get("type")).startswith(_SEARCH):
            search = search_options(tool, place, warnings)
        else:
            made.append(_tool(tool, place, untranslatable))
    choice = _choice(optional_object(fields, "tool_choice"))
    return {"tools": made, **choice, **search} if made else search


def _tool(tool: Json, place: str, untranslatable: list[str]) -> Json:
    kind = optional_text(tool, "type", place)
    if kind not in (None, "custom"):
        untranslatable.append(f"{place}: only Anthropic's hosts have the tool {kind}")
        return tool
    name = required_name(tool, "name", place)
    schema = required_object(tool, "input_schema", place)
    function: Json = {"name": name, "parameters": schema}
    if description := optional_text(tool, "description", place):
        function["description"] = description
    if optional_flag(tool, "strict", place):
        function["strict"] = True
    callers = optional_list(tool, "allowed_callers", place)
    if callers and _DIRECT not in callers:
        untranslatable.append(f"{place}.allowed_callers: only Anthropic's hosts run code that calls tools")
    return {"type": "function", "function": function, **_beside(tool)}


def _beside(tool: Json) -> Json:
    return {name: value for name, value in tool.items() if name not in _TRANSLATED and value is not None}


def _choice(choice: Json | None) -> Json:
    if choice is None:
        return {}
    place = "tool_choice"
    kind = required_name(choice, "type", place)
    if kind == "tool":
        made: Json = {"tool_choice": {"type": "function", "function": {"name": required_name(choice, "name", place)}}}
    elif kind in _CHOICES:
        made = {"tool_choice": _CHOICES[kind]}
    else:
        raise invalid(field_of(place, "type"), "expected auto, any, tool or none")
    if optional_flag(choice, "disable_parallel_tool_use", place):
        made["parallel_tool_calls"] = False
    return made


class _Ids(msgspec.Struct):
    session_id: str = ""
    account_uuid: str = ""
    device_id: str = ""


_ids_decoder = msgspec.json.Decoder(_Ids)


def read_user(fields: Json, untranslatable: list[str]) -> tuple[str, str]:
    metadata = optional_object(fields, "metadata")
    if metadata is None:
        return "", ""
    for name, value in metadata.items():
        if name != "user_id" and value is not None:
            untranslatable.append(f"metadata.{name}: a chat completion has no such field")
    return user_and_session(optional_text(metadata, "user_id", "metadata") or "")


def user_and_session(user_id: str) -> tuple[str, str]:
    """An id in any other form than Claude Code's is the user alone."""
    if user_id.startswith("{"):
        return _from_json(user_id)
    found = _WITH_SESSION.fullmatch(user_id)
    return (found["user"], found["session"]) if found else (user_id, "")


def _from_json(user_id: str) -> tuple[str, str]:
    try:
        ids = _ids_decoder.decode(user_id)
    except msgspec.DecodeError:
        return user_id, ""
    user = ids.account_uuid or ids.device_id
    return (user, ids.session_id) if user else (user_id, ids.session_id)


def read(body: bytes) -> SurfaceRequest:
    """Raises ValidationError (400), whose message names the client's field."""
    fields = decoded(body)
    plain = plain_chat(fields)
    if plain is not None:
        return SurfaceRequest(_encode(plain), fields=plain, is_plain=True, is_translated=True)
    if fields.get("max_tokens") is None:
        raise missing("max_tokens")
    return translated(fields)


def read_count(body: bytes) -> SurfaceRequest:
    """The chat completion whose prompt is to be counted
    (https://platform.claude.com/docs/en/api/messages-count-tokens)."""
    fields = decoded(body)
    return translated({name: value for name, value in fields.items() if name not in _OF_ANSWERS})


def translated(fields: Json) -> SurfaceRequest:
    untranslatable: list[str] = []
    warnings: list[str] = []
    model = required_name(fields, "model")
    messages = read_messages(fields.get("messages"), untranslatable)
    user, session_id = read_user(fields, untranslatable) if "metadata" in fields else ("", "")
    system = fields.get("system")
    if system:
        messages = read_system(system) + messages
    made: Json = {"model": model, "messages": messages}
    if user:
        made["user"] = user
    for name, value in fields.items():
        if value is None or name in _READ_TOGETHER:
            continue
        reader = _READERS.get(name)
        if reader is None:
            _pass(name, value, made, untranslatable)
        elif (read := reader(fields, untranslatable)) is not None:
            made["stop" if name == "stop_sequences" else name] = read
    if "tools" in fields or "tool_choice" in fields:
        made |= read_tools(fields, untranslatable, warnings)
    if not _OF_OUTPUT.isdisjoint(fields):
        made |= read_output(fields, untranslatable)
    tool_names = fit_names(made)
    return SurfaceRequest(
        _encode(made),
        tuple(untranslatable),
        session_id=session_id,
        fields=made,
        is_translated=True,
        tool_names=tool_names,
        warnings=tuple(warnings),
    )


def _max_tokens(fields: Json, untranslatable: list[str]) -> int | None:
    limit = optional_integer(fields, "max_tokens", minimum=0, maximum=_MAX_TOKENS)
    if limit == 0:
        # Anthropic fills its prompt cache without an answer then, while a chat completion has at least one token.
        untranslatable.append("max_tokens: a chat completion cannot fill a cache without an answer")
        return 1
    return limit


def _stop(fields: Json) -> list[str] | None:
    sequences = optional_list(fields, "stop_sequences")
    for index, sequence in enumerate(sequences or ()):
        if not isinstance(sequence, str):
            raise invalid(f"stop_sequences[{index}]", "expected a string")
    return sequences or None


def _tier(fields: Json) -> str | None:
    tier = optional_text(fields, "service_tier")
    return None if tier is None else _TIERS.get(tier, tier)


# Each function reads the field of the request and returns its value in a chat completion.
_READERS: Mapping[str, Callable[[Json, list[str]], Any]] = {
    "max_tokens": _max_tokens,
    "stream": lambda fields, _: optional_flag(fields, "stream"),
    "temperature": lambda fields, _: optional_share(fields, "temperature"),
    "top_p": lambda fields, _: optional_share(fields, "top_p"),
    "top_k": lambda fields, _: optional_integer(fields, "top_k", minimum=0),
    "stop_sequences": lambda fields, _: _stop(fields),
    "service_tier": lambda fields, _: _tier(fields),
}


def _pass(name: str, value: Any, made: Json, untranslatable: list[str]) -> None:
    if name not in _PASSED:
        untranslatable.append(f"{name}: a chat completion has no such field")
        return
    made[name] = value
    if value and name in _ONLY_ANTHROPICS and not (name == "inference_geo" and value == _USUAL_GEO):
        untranslatable.append(f"{name}: {_ONLY_ANTHROPICS[name]}")
