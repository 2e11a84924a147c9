"""Makes a message of the Messages API, and its content blocks, from the message of a whole chat completion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gateway.surfaces import shapes
from gateway.surfaces.checks import Json
from gateway.surfaces.messages.finish import OF_THE_END, message_id, stop_fields, usage_of
from gateway.surfaces.messages.foreign import SEAL, sealed
from gateway.surfaces.messages.search import search_blocks
from gateway.surfaces.shapes import Message, ToolCall
from gateway.surfaces.tool_names import restore_names
from integrations.providers.anthropic.native import is_block
from integrations.providers.common.claude import CLAUDE

# Anthropic's documentation of fine-grained streaming gives the field for an input that is not JSON:
# https://platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming
_NOT_JSON = "INVALID_JSON"
# Entries of `reasoning_details` of these types have a text, in the field that is named here.
_TEXTS = {"reasoning.text": "text", "reasoning.summary": "summary"}
UNSIGNED = sealed({})
"""The signature of reasoning that no vendor signed."""

_decode = msgspec.json.Decoder().decode


def content_of(message: Message) -> list[Json]:
    """The blocks in order. Anthropic's own are returned unchanged; other vendors' thinking carries what they want back
    in its signature."""
    specific = message.provider_specific_fields or {}
    own = own_blocks(specific.get("content"))
    if own is not None and _match(own, message):
        return own
    others = _texts(message)
    calls = [_call(call) for call in message.tool_calls or ()]
    refusal = message.refusal or ""
    if refusal and not others and not calls:
        others = [{"type": "text", "text": refusal}]
    return _with_thoughts(message, others, calls)


def own_blocks(content: Any) -> list[Json] | None:
    """Anthropic's blocks without their stream indexes; None for anything else, such as another vendor's parts."""
    if not isinstance(content, list) or not content or not all(map(_is_own, content)):
        return None
    return [{name: value for name, value in block.items() if name != "index"} for block in content]


def _is_own(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    if block.get("type") == "text":
        return isinstance(block.get("text"), str)
    return is_block(block)


def _match(blocks: Iterable[Json], message: Message) -> bool:
    """Whether the blocks have the message's texts and calls: a guardrail may have changed them, and a tool's input may
    be the answer's text (`integrations/providers/anthropic/answer_tool.py`)."""
    texts = "".join(block["text"] for block in blocks if block["type"] == "text")
    ids = [block.get("id") for block in blocks if block["type"] == "tool_use"]
    return texts == (message.content or "") and ids == [call.id for call in message.tool_calls or ()]


def _texts(message: Message) -> list[Json]:
    if not message.content:
        return []
    block: Json = {"type": "text", "text": message.content}
    citations = [made for one in message.annotations or () if (made := citation_of(one, message.content)) is not None]
    return [{**block, "citations": citations}] if citations else [block]


def citation_of(annotation: Mapping[str, Any], text: str) -> Json | None:
    cited = annotation.get("url_citation")
    url = cited.get("url") if isinstance(cited, dict) else None
    if not isinstance(cited, dict) or not isinstance(url, str):
        return None
    start, end, title = cited.get("start_index"), cited.get("end_index"), cited.get("title")
    has_place = isinstance(start, int) and isinstance(end, int) and 0 <= start <= end
    return {
        "type": "web_search_result_location",
        "cited_text": text[start:end] if has_place else "",
        "encrypted_index": SEAL,
        "title": title if isinstance(title, str) else None,
        "url": url,
    }


def _call(call: ToolCall) -> Json:
    function = call.function
    name, arguments = (function.name or "", function.arguments or "") if function is not None else ("", "")
    return {"type": "tool_use", "id": call.id or "", "name": name, "input": _input(arguments)}


def _input(arguments: str) -> Json:
    """Arguments that are not JSON (the answer was cut off) become the value of one field."""
    try:
        decoded = _decode(arguments or "{}")
    except msgspec.DecodeError:
        return {_NOT_JSON: arguments}
    return decoded if isinstance(decoded, dict) else {_NOT_JSON: arguments}


def _with_thoughts(message: Message, others: list[Json], calls: list[Json]) -> list[Json]:
    """Puts thinking in place: Anthropic's own has an index, another vendor's signature of a call stands before the
    call, anything else comes first."""
    details = [detail for detail in message.reasoning_details or () if not is_empty(detail)]
    first = _unsigned(message.reasoning_content or "", details)
    placed = [*others, *calls]
    for detail in details:
        place = _place(detail, placed)
        if place is None:
            first.append(thinking_block(detail))
        else:
            placed.insert(place, thinking_block(detail))
    return [*first, *placed]


def _place(detail: Mapping[str, Any], blocks: list[Json]) -> int | None:
    if detail.get("format") == CLAUDE:
        index = detail.get("index")
        return index if isinstance(index, int) and index >= 0 else None
    owner = detail.get("id")
    return next((n for n, block in enumerate(blocks) if owner and block.get("id") == owner), None)


def _unsigned(reasoning: str, details: Iterable[Mapping[str, Any]]) -> list[Json]:
    for detail in details:
        reasoning = reasoning.replace(text_of(detail), "", 1)
    return [{"type": "thinking", "thinking": reasoning, "signature": UNSIGNED}] if reasoning else []


def is_empty(detail: Mapping[str, Any]) -> bool:
    """Whether an entry of `reasoning_details` says nothing and need not come back."""
    return not (text_of(detail) or detail.get("signature") or detail.get("data"))


def text_of(detail: Mapping[str, Any]) -> str:
    text = detail.get(_TEXTS.get(str(detail.get("type")), ""))
    return text if isinstance(text, str) else ""


def is_text(detail: Mapping[str, Any]) -> bool:
    return detail.get("type") in _TEXTS


def thinking_block(detail: Mapping[str, Any]) -> Json:
    if is_text(detail):
        return {"type": "thinking", "thinking": text_of(detail), "signature": signature_of(detail)}
    is_claudes = detail.get("format") == CLAUDE and detail.get("data")
    return {"type": "redacted_thinking", "data": detail["data"] if is_claudes else sealed(detail)}


def signature_of(detail: Mapping[str, Any]) -> str:
    if detail.get("format") == CLAUDE and detail.get("signature"):
        return str(detail["signature"])
    return sealed({name: value for name, value in detail.items() if name not in _TEXTS.values()})


_encode = msgspec.json.Encoder().encode


def message_of(completion: bytes, request_id: str, tool_names: Mapping[str, str], *, searched: bool = False) -> bytes:
    """Returns the JSON of the message. Of several choices the first one counts: the Messages API has no more.
    `searched` means that the client offered a search of the web."""
    answer = shapes.decode(completion)
    choice = answer.choices[0] if answer.choices else shapes.Choice()
    message = choice.message or shapes.Message()
    if tool_names:
        restore_names(message, tool_names)
    specific = message.provider_specific_fields or {}
    made = {
        "id": message_id(answer.id, request_id),
        "type": "message",
        "role": "assistant",
        "model": answer.model or "",
        "content": [*(search_blocks(message.annotations or (), request_id) if searched else ()), *content_of(message)],
        **stop_fields(choice.finish_reason, specific, message.refusal or ""),
        "usage": usage_of(answer.usage),
        **{name: specific[name] for name in OF_THE_END if specific.get(name) is not None},
    }
    if message.container is not None:
        made["container"] = message.container
    return _encode(made)


def counted(completion: bytes) -> bytes:
    """Returns the JSON of the answer to a request to count tokens: those of the completion's whole prompt."""
    usage = usage_of(shapes.decode(completion).usage)
    cached = usage["cache_creation_input_tokens"] + usage["cache_read_input_tokens"]
    return count_body(usage["input_tokens"] + cached)


def count_body(input_tokens: int) -> bytes:
    return _encode({"input_tokens": input_tokens})
