"""https://developers.openai.com/api/docs/guides/migrate-to-responses"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.openai.limits import short_id

Json = dict[str, Any]

_ENCRYPTED = "reasoning.encrypted"
_FILE_FIELDS = ("file_id", "filename", "file_data")
_BREAKPOINT = "prompt_cache_breakpoint"


def encrypted_reasoning(item: Mapping[str, Any], place: int, form: str) -> Json | None:
    """Returns the entry of `reasoning_details` that brings an item of reasoning back; None for one that nobody could
    read again. `place` is the number of items in front of it, `form` the format of the vendor's reasoning."""
    data = item.get("encrypted_content")
    if not isinstance(data, str) or not data:
        return None
    return {"type": _ENCRYPTED, "id": item.get("id") or "", "data": data, "format": form, "index": place}


def input_items(messages: Iterable[Any]) -> list[Json]:
    """Returns the items. The `reasoning_details` of the messages are the vendor's own."""
    items: list[Json] = []
    custom: set[str] = set()  # `custom` holds the ids of the calls of custom tools, whose results are of another type.
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            items += _answer(message, custom)
        elif role == "tool":
            items.append(_result(message, custom))
        else:
            items.append({"role": role, "content": _content(message.get("content"), "input_text")})
    return items


def _answer(message: Mapping[str, Any], custom: set[str]) -> list[Json]:
    """Returns the items of an earlier answer, each with its reasoning in front of it."""
    content = _content(message.get("content"), "output_text")
    if message.get("refusal"):
        parts = [{"type": "output_text", "text": content}] if isinstance(content, str) and content else content or []
        content = [*parts, {"type": "refusal", "refusal": message["refusal"]}]
    items: list[Json] = [{"role": "assistant", "content": content}] if content else []
    items += [_call(call, custom) for call in message.get("tool_calls") or ()]
    for number, detail in enumerate(message.get("reasoning_details") or ()):
        if detail.get("type") == _ENCRYPTED:
            place = detail.get("index")
            items.insert(place if isinstance(place, int) and place >= 0 else number, _reasoning(detail))
    return items


def _reasoning(detail: Mapping[str, Any]) -> Json:
    own_id = {"id": detail["id"]} if detail.get("id") else {}
    return {"type": "reasoning", **own_id, "summary": [], "encrypted_content": detail.get("data")}


def _id(call_id: Any) -> Any:
    return short_id(call_id) if isinstance(call_id, str) else call_id


def _call(call: Mapping[str, Any], custom: set[str]) -> Json:
    call_id = _id(call.get("id"))
    if call.get("type") == "custom" and isinstance(inner := call.get("custom"), Mapping):
        custom.add(str(call_id))
        return {"type": "custom_tool_call", "call_id": call_id, "name": inner.get("name"), "input": inner.get("input")}
    function = call.get("function")
    if not isinstance(function, Mapping):
        return dict(call)  # The vendor refuses it with its own message.
    named = {"call_id": call_id, "name": function.get("name"), "arguments": function.get("arguments")}
    return {"type": "function_call", **named}


def _result(message: Mapping[str, Any], custom: set[str]) -> Json:
    call_id = _id(message.get("tool_call_id"))
    kind = "custom_tool_call_output" if str(call_id) in custom else "function_call_output"
    output = _content(message.get("content"), "input_text")
    if isinstance(output, list) and all(part.keys() == {"type", "text"} for part in output):
        output = "\n".join(part["text"] for part in output)
    return {"type": kind, "call_id": call_id, "output": output}


def _content(content: Any, text_type: str) -> str | list[Json]:
    if not isinstance(content, list):
        return content or ""
    return [_part(part, text_type) if isinstance(part, Mapping) else part for part in content]


def _part(part: Mapping[str, Any], text_type: str) -> Json:
    """Returns the part under the names that it has in an item; one of an unknown type is left to the vendor."""
    kept = {_BREAKPOINT: part[_BREAKPOINT]} if _BREAKPOINT in part else {}
    inner = part.get(str(part.get("type")))
    match part.get("type"):
        case "text":
            return {"type": text_type, "text": part.get("text"), **kept}
        case "image_url":
            image = inner if isinstance(inner, Mapping) else {"url": inner}
            return {"type": "input_image", "image_url": image.get("url"), "detail": image.get("detail", "auto"), **kept}
        case "file" if isinstance(inner, Mapping):
            file = {name: inner[name] for name in _FILE_FIELDS if inner.get(name) is not None}
            return {"type": "input_file", **file, **kept}
    return dict(part)


ENCRYPTED = "reasoning.encrypted_content"
# https://developers.openai.com/api/reference/resources/responses/methods/create: "integer below minimum value"
_MIN_OUTPUT_TOKENS = 16
# An answer would be of another kind without these fields, unless they have these values.
_OF_KIND: Mapping[str, Any] = {"n": 1, "modalities": ["text"], "audio": None}
# The Responses API does not have these fields, each with its value that has no effect.
_WITHOUT_EFFECT: Mapping[str, Any] = {
    "logprobs": False,
    "top_logprobs": 0,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "logit_bias": {},
    "stop": [],
    "seed": None,
    "prediction": None,
}
_NO_COUNTERPART = "the Responses API has no counterpart"
_ANY_OBJECT: Mapping[str, Any] = {"type": "object", "properties": {}}


def kind_of_answer(fields: Mapping[str, Any]) -> str:
    return next(iter(_effective(fields, _OF_KIND)), "")


def responses_body(fields: Json, *, summary: bool, provider: str) -> tuple[Json, tuple[str, ...]]:
    """Returns the body and the warnings. `summary`: the client wants to read the reasoning. Fields that both APIs know,
    and unknown ones, keep their names. Raises UnsupportedParameterError."""
    if refused := kind_of_answer(fields):
        raise UnsupportedParameterError(refused, "the Responses API does not have it", provider=provider)
    warnings = [f"{name}: dropped, {_NO_COUNTERPART}" for name in _effective(fields, _WITHOUT_EFFECT)]
    moved = {"messages", "max_tokens", "max_completion_tokens", "reasoning_effort", "verbosity", "response_format"}
    gone = {*moved, *_OF_KIND, *_WITHOUT_EFFECT, "stream_options", "tools", "tool_choice"}
    made: Json = {name: value for name, value in fields.items() if name not in gone and value is not None}
    made["input"] = input_items(fields["messages"])
    if (limit := _limit(fields)) is not None:
        made["max_output_tokens"] = max(limit, _MIN_OUTPUT_TOKENS)
        if limit < _MIN_OUTPUT_TOKENS:
            warnings.append(f"max_completion_tokens: {limit} became {_MIN_OUTPUT_TOKENS}, the least there is")
    made |= _objects(fields, summary=summary)
    if fields.get("tools"):
        made["tools"] = [_tool(tool) for tool in fields["tools"]]
    if fields.get("tool_choice") is not None:
        made["tool_choice"] = _choice(fields["tool_choice"])
    if any(message.get("name") for message in fields["messages"] if message.get("role") != "tool"):
        warnings.append(f"messages.name: dropped, {_NO_COUNTERPART}")
    made.setdefault("store", False)
    made["include"] = [ENCRYPTED]
    return made, tuple(warnings)


def _effective(fields: Mapping[str, Any], idle: Mapping[str, Any]) -> list[str]:
    return [name for name, value in idle.items() if fields.get(name) is not None and fields[name] != value]


def _limit(fields: Mapping[str, Any]) -> int | None:
    newer = fields.get("max_completion_tokens")
    limit: int | None = fields.get("max_tokens") if newer is None else newer
    return limit


def _objects(fields: Mapping[str, Any], *, summary: bool) -> Json:
    reasoning: Json = {"effort": fields.get("reasoning_effort"), "summary": "auto" if summary else None}
    text: Json = {"format": _format(fields.get("response_format")), "verbosity": fields.get("verbosity")}
    streamed = fields.get("stream_options")
    options = {name: value for name, value in (streamed or {}).items() if name != "include_usage"}
    objects = {"reasoning": reasoning, "text": text, "stream_options": options}
    filled = {name: {key: value for key, value in held.items() if value is not None} for name, held in objects.items()}
    return {name: held for name, held in filled.items() if held}


def _format(form: Any) -> Any:
    if not isinstance(form, Mapping) or form.get("type") != "json_schema":
        return form
    return {"type": "json_schema", **(form.get("json_schema") or {})}


def _tool(tool: Mapping[str, Any]) -> Any:
    kind = tool.get("type", "function")
    inner = tool.get(kind) if isinstance(kind, str) else None
    if not isinstance(inner, Mapping):
        return tool
    made: Json = {"type": kind, **{name: value for name, value in inner.items() if value is not None}}
    if kind == "function":
        made["parameters"] = made.get("parameters") or _ANY_OBJECT
        # A function is strict there unless the request says otherwise, and is not in a chat completion.
        made.setdefault("strict", False)
    elif isinstance(form := made.get("format"), Mapping) and isinstance(grammar := form.get("grammar"), Mapping):
        made["format"] = {"type": "grammar", **grammar}
    return made


def _choice(choice: Any) -> Any:
    if not isinstance(choice, Mapping):
        return choice
    inner = choice.get(str(choice.get("type")))
    if not isinstance(inner, Mapping):
        return choice
    made: Json = {"type": choice["type"], **inner}
    if choice["type"] == "allowed_tools":
        made["tools"] = [_choice(tool) for tool in inner.get("tools") or ()]
    return made
