"""https://platform.openai.com/docs/api-reference/responses/object"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.checks import Json
from gateway.surfaces.responses import compaction
from gateway.surfaces.responses.reasoning import encrypted_content
from gateway.surfaces.responses.tools import CUSTOM_INPUT, SEARCH, Origin, Toolbox
from integrations.providers.common.usage import read_usage
from integrations.providers.usage import Usage

_INCLUDE_ENCRYPTED = "reasoning.encrypted_content"
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_PREFIXES = {"function": "fc", "custom": "ctc", SEARCH: "tsc"}
# A response repeats the request's fields, or the values that the vendor fills in for absent ones.
_REPEATED: Json = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


def response_id(request_id: str) -> str:
    return f"resp_{request_id}"


def whole(request: SurfaceRequest, completion: bytes, request_id: str) -> bytes:
    answer = _decode(completion)
    choice = answer["choices"][0] if answer.get("choices") else {}
    reason = choice.get("finish_reason")
    message = choice.get("message") or {}
    end = ending(reason)
    if compaction.is_asked(request):
        summary = compaction.summary_in(message, request)
        output = [compaction.compaction_item(item_id("cmp", request_id, 0), summary)]
    else:
        output = output_items(message, request, request_id)
        output[-1]["status"] = end["status"]  # What was cut off is the last item.
    created = answer.get("created") or int(time.time())
    response = blank(request, request_id, model=answer.get("model") or "", created=created)
    return _encode({**response, **end, "output": output, "usage": usage(answer.get("usage"))})


def blank(request: SurfaceRequest, request_id: str, *, model: str, created: int) -> Json:
    fields: Mapping[str, Any] = request.echo or {}
    named = {name: value for name, value in fields.items() if name in _REPEATED and value is not None}
    return {
        "id": response_id(request_id),
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "previous_response_id": None,
        "store": False,
        "usage": None,
        **_REPEATED,
        **named,
    }


def ending(finish_reason: str | None) -> Json:
    reason = _INCOMPLETE.get(finish_reason or "")
    if reason is None:
        return {"status": "completed"}
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}


def usage(counts: Mapping[str, Any] | None) -> Json | None:
    """The Responses API's output tokens always include reasoning. Keeps the mark of an estimate."""
    if not counts:
        return None
    found = read_usage(counts) or Usage()
    made: Json = {
        "input_tokens": found.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": found.cache_read_tokens,
            "cache_write_tokens": found.cache_write_tokens,
        },
        "output_tokens": found.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": found.reasoning_tokens},
        "total_tokens": found.prompt_tokens + found.completion_tokens,
    }
    if counts.get("estimated"):
        made["estimated"] = True
    return made


def output_items(message: Mapping[str, Any], request: SurfaceRequest, request_id: str) -> list[Json]:
    items: list[Json] = []
    for summary in compaction.summaries_of(message.get("provider_specific_fields")):
        items.append(compaction.compaction_item(item_id("cmp", request_id, len(items)), summary))
    reasoning, details = message.get("reasoning_content") or "", message.get("reasoning_details") or []
    if reasoning or details:
        items.append(reasoning_item(item_id("rs", request_id, len(items)), reasoning, details, request))
    text, refusal = message.get("content"), message.get("refusal")
    if text or refusal or not message.get("tool_calls"):
        parts = [text_part(text or "", message.get("annotations"))] if text or not refusal else []
        if refusal:
            parts.append({"type": "refusal", "refusal": refusal})
        items.append(message_item(item_id("msg", request_id, len(items)), parts, status="completed"))
    calls = message.get("tool_calls") or ()
    toolbox = Toolbox.of(request.echo or {}) if calls else Toolbox()
    for call in calls:
        function = call.get("function") or {}
        origin = toolbox.origin_of(function.get("name") or "")
        identifier = item_id(call_id_prefix(origin), request_id, len(items))
        call_id, arguments = call.get("id") or "", function.get("arguments") or ""
        items.append(call_item(origin, identifier, call_id, arguments, status="completed"))
    return items


def item_id(prefix: str, request_id: str, index: int) -> str:
    return f"{prefix}_{request_id}_{index}"


def reasoning_item(
    identifier: str, text: str, details: list[dict[str, Any]], request: SurfaceRequest, *, status: str = "completed"
) -> Json:
    """Has encrypted content only if the client includes it."""
    item: Json = {
        "id": identifier,
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text}] if text else [],
        "status": status,
    }
    if details and _INCLUDE_ENCRYPTED in ((request.echo or {}).get("include") or ()):
        item["encrypted_content"] = encrypted_content(details)
    return item


def message_item(identifier: str, parts: list[Json], *, status: str) -> Json:
    return {"id": identifier, "type": "message", "status": status, "role": "assistant", "content": parts}


def text_part(text: str, annotations: list[Mapping[str, Any]] | None = None) -> Json:
    return {
        "type": "output_text",
        "text": text,
        "annotations": [annotation(one) for one in annotations or ()],
        "logprobs": [],
    }


def annotation(found: Mapping[str, Any]) -> Json:
    kind = str(found.get("type"))
    inner = found.get(kind)
    return {"type": kind, **inner} if isinstance(inner, Mapping) else dict(found)


def call_item(origin: Origin, identifier: str, call_id: str, arguments: str, *, status: str) -> Json:
    item: Json = {"id": identifier, "status": status, "call_id": call_id or identifier}
    if origin.kind == SEARCH:
        return {**item, "type": "tool_search_call", "execution": "client", "arguments": _decoded(arguments) or {}}
    item["name"] = origin.name
    if origin.namespace:
        item["namespace"] = origin.namespace
    if origin.kind == "custom":
        return {**item, "type": "custom_tool_call", "input": _custom_input(arguments)}
    return {**item, "type": "function_call", "arguments": arguments}


def call_id_prefix(origin: Origin) -> str:
    return _PREFIXES[origin.kind]


def _custom_input(arguments: str) -> str:
    fields = _decoded(arguments)
    text = fields.get(CUSTOM_INPUT) if fields is not None else None
    return text if isinstance(text, str) else arguments


def _decoded(arguments: str) -> Json | None:
    try:
        return _decode(arguments)
    except msgspec.DecodeError:
        return None
