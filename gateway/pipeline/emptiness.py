"""Detects answers that hold neither text nor call.

Token counts cannot tell: reasoning counts as tokens, and an answer may consist of nothing else. Only answers to managed
prompts are checked, which rollouts compare (docs/rollouts.md#what-counts).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from analytics.request_log.record import Operation
from analytics.shipper.streamed import assembled
from gateway.pipeline.context import RequestState
from gateway.pipeline.native import as_chat_completion

_REASONING = frozenset({"thinking", "redacted_thinking", "reasoning"})

# Where one of these expressions matches, a stream holds text or a call: names and quotes within texts are escaped, so
# that an answer cannot imitate them. Mostly one of the first events matches, and only the others have to be decoded.
_TEXT = rb'"\s*:\s*"(?!")'
_CHAT = re.compile(rb'"delta"\s*:\s*\{\s*(?:"role"\s*:\s*"\w+"\s*,\s*)?"content%b|"tool_calls"\s*:\s*\[\s*\{' % _TEXT)
_NATIVE = {
    Operation.COMPLETIONS: re.compile(rb'"text%b' % _TEXT),
    Operation.MESSAGES: re.compile(rb'"text_delta"\s*,\s*"text%b|"type"\s*:\s*"\w*tool_use"' % _TEXT),
    Operation.RESPONSES: re.compile(rb'"type"\s*:\s*"(?:response\.(?:output_text|refusal)\.delta|\w+_call)"'),
    # A part that is a thought has a further field.
    Operation.GENERATE_CONTENT: re.compile(
        rb'\{\s*"text%b(?:[^"\\]|\\.)*"\s*\}|"functionCall"\s*:\s*\{' % _TEXT, re.DOTALL
    ),
}


class _Message(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None
    audio: Any = None
    images: Any = None

    @property
    def is_empty(self) -> bool:
        if self.tool_calls or self.function_call or self.refusal or self.audio or self.images:
            return False
        if isinstance(self.content, list):
            return all(_is_empty(part) for part in self.content)
        return not self.content


class _Choice(msgspec.Struct):
    message: _Message


class _Completion(msgspec.Struct):
    choices: list[_Choice]


_decode = msgspec.json.Decoder(_Completion).decode


def is_empty(state: RequestState) -> bool:
    answer, stream = state.answer, state.request is not None and state.request.stream is True
    data = b"".join(answer.parts)
    if stream and (_NATIVE[Operation(state.surface.operation)] if answer.is_native else _CHAT).search(data):
        return False
    if answer.is_native:
        data = as_chat_completion(state, data, stream=stream)
    elif stream:
        data = assembled(data)
    try:
        completion = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return all(choice.message.is_empty for choice in completion.choices)


def _is_empty(part: dict[str, Any]) -> bool:
    kind = part.get("type")
    return kind in _REASONING or (kind == "text" and not part.get("text"))
