"""The bytes that mock and load driver share: requests of a given size, the 1.5 KB answer, the stream's events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MODEL = "mock"
ANSWER_BYTES = 1536
# No request contains these texts: finding one in a gateway's answer proves that the mock's answer arrived.
ANSWER_END = b"the-answer-ends-here"
EVENT_WORD = b"streamedword"
PROMPT_TOKENS = 250
ANSWER_TOKENS = 300
TEXT = "Tell me about the sea and the ships on it. "

_CREATED = 1_760_000_000


@dataclass(frozen=True, slots=True)
class Protocol:
    """The end of the protocol's address, and the bytes in each word of a stream and in its end. A word stands in other
    events too if the protocol repeats the text at the end."""

    name: str
    word: bytes
    end: bytes


CHAT = Protocol("chat/completions", EVENT_WORD, b"data: [DONE]")
GEMINI = Protocol(":generateContent", EVENT_WORD, b'"finishReason":"STOP"')
_PROTOCOLS = (
    CHAT,
    GEMINI,
    Protocol("messages", EVENT_WORD, b"event: message_stop"),
    Protocol("responses", b'"delta":" ' + EVENT_WORD, b"event: response.completed"),
)


def protocol_of(path: str) -> Protocol:
    return next((one for one in _PROTOCOLS if path.endswith(one.name)), CHAT)


def address_of(path: str, *, stream: bool) -> str:
    if stream and protocol_of(path) is GEMINI:
        return path.removesuffix(GEMINI.name) + ":streamGenerateContent?alt=sse"
    return path


def answer(size: int = ANSWER_BYTES) -> bytes:
    filling = size - len(_answer_with(""))
    sentence = "The quick brown fox jumps over the lazy dog. "
    return _answer_with((sentence * (filling // len(sentence) + 1))[:filling])


def _answer_with(text: str) -> bytes:
    message = {"role": "assistant", "content": text + ANSWER_END.decode(), "refusal": None}
    return _json(
        {
            "id": "chatcmpl-mock0000000000000000000000",
            "object": "chat.completion",
            "created": _CREATED,
            "model": MODEL,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
            "usage": _usage(ANSWER_TOKENS),
        }
    )


def event(delta: dict[str, str], finish_reason: str | None = None) -> bytes:
    return _event([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}])


def usage_event(completion_tokens: int) -> bytes:
    return _event([], usage=_usage(completion_tokens))


def anthropic_answer() -> bytes:
    text = json.loads(answer())["choices"][0]["message"]["content"]
    return _json(
        {
            "id": "msg_mock0000000000000000000000",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": PROMPT_TOKENS, "output_tokens": ANSWER_TOKENS},
        }
    )


def anthropic_opening() -> bytes:
    message = json.loads(anthropic_answer()) | {"content": [], "stop_reason": None}
    block = {"type": "text", "text": ""}
    return _named_event("message_start", message=message) + _named_event(
        "content_block_start", index=0, content_block=block
    )


def anthropic_word() -> bytes:
    delta = {"type": "text_delta", "text": " " + EVENT_WORD.decode()}
    return _named_event("content_block_delta", index=0, delta=delta)


def anthropic_ending(completion_tokens: int) -> bytes:
    return (
        _named_event("content_block_stop", index=0)
        + _named_event(
            "message_delta",
            delta={"stop_reason": "end_turn", "stop_sequence": None},
            usage={"output_tokens": completion_tokens},
        )
        + _named_event("message_stop")
    )


def responses_answer() -> bytes:
    return _json(_response([_output_item(json.loads(answer())["choices"][0]["message"]["content"])], ANSWER_TOKENS))


def responses_opening() -> bytes:
    blank = {**_response([], 0), "status": "in_progress", "usage": None}
    item = {**_output_item(""), "content": [], "status": "in_progress"}
    return (
        _named_event("response.created", sequence_number=0, response=blank)
        + _named_event("response.in_progress", sequence_number=1, response=blank)
        + _named_event("response.output_item.added", sequence_number=2, output_index=0, item=item)
        + _named_event("response.content_part.added", sequence_number=3, **_PART_PLACE, part=_text_part(""))
    )


def responses_word() -> bytes:
    return _named_event(
        "response.output_text.delta", sequence_number=4, **_PART_PLACE, delta=" " + EVENT_WORD.decode(), logprobs=[]
    )


def responses_ending(completion_tokens: int) -> bytes:
    text = (" " + EVENT_WORD.decode()) * completion_tokens
    item = _output_item(text)
    return (
        _named_event("response.output_text.done", sequence_number=5, **_PART_PLACE, text=text, logprobs=[])
        + _named_event("response.content_part.done", sequence_number=6, **_PART_PLACE, part=_text_part(text))
        + _named_event("response.output_item.done", sequence_number=7, output_index=0, item=item)
        + _named_event("response.completed", sequence_number=8, response=_response([item], completion_tokens))
    )


def gemini_answer() -> bytes:
    text = json.loads(answer())["choices"][0]["message"]["content"]
    return _json(_content(text, ANSWER_TOKENS, finishReason="STOP"))


def gemini_word() -> bytes:
    return b"data: " + _json(_content(" " + EVENT_WORD.decode(), 1)) + b"\n\n"


def gemini_ending(completion_tokens: int) -> bytes:
    return b"data: " + _json(_content("", completion_tokens, finishReason="STOP")) + b"\n\n"


def _content(text: str, completion_tokens: int, **end: str) -> dict[str, Any]:
    counts = {
        "promptTokenCount": PROMPT_TOKENS,
        "candidatesTokenCount": completion_tokens,
        "totalTokenCount": PROMPT_TOKENS + completion_tokens,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": PROMPT_TOKENS}],
    }
    return {
        "candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, **end, "index": 0}],
        "usageMetadata": counts,
        "modelVersion": MODEL,
        "responseId": "mock0000000000000000000000",
    }


_PART_PLACE = {"item_id": "msg_mock0000000000000000000000", "output_index": 0, "content_index": 0}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _output_item(text: str) -> dict[str, Any]:
    item_id = _PART_PLACE["item_id"]
    return {"id": item_id, "type": "message", "status": "completed", "role": "assistant", "content": [_text_part(text)]}


def _response(output: list[dict[str, Any]], completion_tokens: int) -> dict[str, Any]:
    usage = {
        "input_tokens": PROMPT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": PROMPT_TOKENS + completion_tokens,
    }
    return {
        "id": "resp_mock0000000000000000000000",
        "object": "response",
        "created_at": _CREATED,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": "You are a helpful assistant.",
        "model": MODEL,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 0.5,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage,
        "metadata": {},
    }


def models() -> bytes:
    entry = {"id": MODEL, "object": "model", "created": _CREATED, "owned_by": "mock"}
    return _json({"object": "list", "data": [entry]})


def request_body(
    model: str,
    *,
    size: int = 1024,
    stream_events: int = 0,
    more: Mapping[str, Any] | None = None,
    protocol: Protocol = CHAT,
    text: str = TEXT,
) -> bytes:
    """Returns a request of `size` bytes; with `stream_events` it requests a stream of that many words.

    `more` are further fields; a `prompt_config` among them replaces the system message. `text` is repeated or cut.
    """
    if protocol is GEMINI:
        return _gemini_request(size, stream_events or 256, text)
    fields: dict[str, Any] = {"model": model, "temperature": 0.5}
    fields["max_output_tokens" if protocol.name == "responses" else "max_tokens"] = stream_events or 256
    fields |= more or {}
    if stream_events:
        fields |= {"stream": True} | ({"stream_options": {"include_usage": True}} if protocol is CHAT else {})
    return _request_with(fields, _text(size - len(_request_with(fields, "", protocol)), text), protocol)


def _text(size: int, text: str) -> str:
    return (text * (max(size, 0) // len(text) + 1))[: max(size, 1)]


def _gemini_request(size: int, max_tokens: int, text: str) -> bytes:
    fields = {
        "systemInstruction": {"parts": [{"text": "You are a helpful assistant."}]},
        "generationConfig": {"temperature": 0.5, "maxOutputTokens": max_tokens},
    }
    overhead = len(_json({**fields, "contents": [{"role": "user", "parts": [{"text": ""}]}]}))
    return _json({**fields, "contents": [{"role": "user", "parts": [{"text": _text(size - overhead, text)}]}]})


def _request_with(fields: dict[str, Any], text: str, protocol: Protocol) -> bytes:
    system = "" if "prompt_config" in fields else "You are a helpful assistant."
    user = {"role": "user", "content": text}
    if protocol.name == "messages":
        return _json({**fields, **({"system": system} if system else {}), "messages": [user]})
    if protocol.name == "responses":
        return _json({**fields, **({"instructions": system} if system else {}), "input": [user]})
    first = [{"role": "system", "content": system}] if system else []
    return _json({**fields, "messages": [*first, user]})


def _event(choices: list[dict[str, Any]], **extra: Any) -> bytes:
    chunk = {
        "id": "chatcmpl-mock0000000000000000000000",
        "object": "chat.completion.chunk",
        "created": _CREATED,
        "model": MODEL,
        "system_fingerprint": "fp_mock",
        "choices": choices,
        **extra,
    }
    return b"data: " + _json(chunk) + b"\n\n"


def _named_event(name: str, **fields: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + _json({"type": name, **fields}) + b"\n\n"


def _usage(completion_tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": completion_tokens,
        "total_tokens": PROMPT_TOKENS + completion_tokens,
    }


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
