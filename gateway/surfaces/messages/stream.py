"""Makes the events of the Messages API (https://platform.claude.com/docs/en/build-with-claude/streaming).

One block is open at a time. Blocks of Anthropic's own tools come whole, and citations after the text that they belong
to, so a text stays open until something else begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from core.errors import ApplicationError
from gateway.surfaces import shapes
from gateway.surfaces.calls import CallOrder, is_json
from gateway.surfaces.checks import Json
from gateway.surfaces.messages.content import (
    UNSIGNED,
    citation_of,
    is_empty,
    is_text,
    own_blocks,
    signature_of,
    text_of,
    thinking_block,
)
from gateway.surfaces.messages.errors import error_body
from gateway.surfaces.messages.finish import OF_THE_END, message_id, stop_fields, usage_of
from gateway.surfaces.messages.foreign import sealed
from gateway.surfaces.messages.search import search_blocks
from gateway.surfaces.tool_names import restore_names
from integrations.providers.common.claude import CLAUDE

_encode = msgspec.json.Encoder().encode
_PING = b'event: ping\ndata: {"type":"ping"}\n\n'
_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
# Blocks of these types have been streamed in pieces before Anthropic's own form of them comes whole.
_STREAMED = frozenset({"thinking", "redacted_thinking", "tool_use"})
# The input of these blocks is streamed, as the vendor does.
_WITH_INPUT = frozenset({"mcp_tool_use", "server_tool_use"})


class MessagesStream:
    """The events of one streamed answer.

    `_index` is the index of the open block, or of the next one if none is open (`_open` is empty). `_texts` are all
    pieces of text; blocks of Anthropic's own have repeated the first `_repeated` characters of them. `_thinking` is the
    text of the open thinking block, `_detail` the `reasoning_details` entry that its vendor wants back. `_citations`
    wait for the next chunk, which may have them in Anthropic's own form. `_numbers` are those of all calls;
    `_arguments` belong to the call with `_call_number`, which was written last.
    """

    def __init__(
        self,
        request_id: str,
        prompt_tokens: int = 0,
        tool_names: Mapping[str, str] | None = None,
        *,
        searched: bool = False,
    ) -> None:
        """`prompt_tokens` is an estimate for the first event; the last one has the provider's count. `tool_names` maps
        names in the chunks to the client's own. `searched`: the client offered a web search, whose blocks then follow
        the text."""
        self._found: list[Json] | None = [] if searched else None
        self._request_id = request_id
        self._prompt_tokens = prompt_tokens
        self._tool_names = tool_names
        self._is_started = False
        self._open: Literal["", "text", "thinking", "tool_use"] = ""
        self._index = 0
        self._texts: list[str] = []
        self._repeated = 0
        self._thinking: list[str] = []
        self._detail: Json | None = None
        self._citations: list[Json] = []
        self._numbers: set[int] = set()
        self._call_number: int | None = None
        self._calls: CallOrder[shapes.ToolCall] = CallOrder(self._is_whole_call)
        self._arguments: list[str] = []
        self._refusal: list[str] = []
        self._specific: Json = {}
        self._container: Any = None
        self._finish: str | None = None
        self._usage: Json | None = None

    def feed(self, chunks: Sequence[bytes]) -> bytes:
        out: list[bytes] = []
        for chunk in chunks:
            self._chunk(chunk, out)
        return b"".join(out)

    def close(self, chunks: Sequence[bytes]) -> bytes:
        out = [self.feed(chunks)]
        if not self._is_started:
            self._start(shapes.Completion(), out)
        self._cite(out)
        refusal = "".join(self._refusal)
        if refusal and not self._index and not self._open:
            self._text(refusal, out)
        for call in self._calls.rest():
            self._call_piece(call, out)
        self._close_block(out)
        if self._found:
            for block in search_blocks(self._found, self._request_id):
                self._whole_block(block, out)
        delta = stop_fields(self._finish, self._specific, refusal)
        if self._container is not None:
            delta["container"] = self._container
        rest = {name: self._specific[name] for name in OF_THE_END if self._specific.get(name) is not None}
        out.append(_event("message_delta", {"delta": delta, "usage": usage_of(self._usage), **rest}))
        out.append(_STOP)
        return b"".join(out)

    def fail(self, error: ApplicationError, relayed: bytes = b"") -> bytes:
        return b"event: error\ndata: " + error_body(error, self._request_id) + b"\n\n"

    def _chunk(self, data: bytes, out: list[bytes]) -> None:
        chunk = shapes.decode(data)
        if chunk.usage is not None:
            self._usage = chunk.usage
        if not self._is_started:
            self._start(chunk, out)
        for choice in chunk.choices:
            if choice.index:
                continue
            self._finish = choice.finish_reason or self._finish
            if choice.delta is not None:
                if self._tool_names:
                    restore_names(choice.delta, self._tool_names)
                self._delta(choice.delta, out)

    def _start(self, chunk: shapes.Completion, out: list[bytes]) -> None:
        self._is_started = True
        message: Json = {
            "id": message_id(chunk.id, self._request_id),
            "type": "message",
            "role": "assistant",
            "model": chunk.model or "",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "stop_details": None,
            "usage": {**usage_of(self._usage), "input_tokens": self._prompt_tokens},
        }
        out.append(_event("message_start", {"message": message}))

    def _delta(self, delta: shapes.Message, out: list[bytes]) -> None:
        specific = delta.provider_specific_fields
        if self._citations and not (specific and "content" in specific):
            self._cite(out)
        if delta.reasoning_content or delta.reasoning_details:
            self._reason(delta.reasoning_content or "", delta.reasoning_details or (), out)
        if delta.content:
            self._text(delta.content, out)
        for call in delta.tool_calls or ():
            self._call(call, out)
        if delta.annotations:
            self._citations += delta.annotations
            if self._found is not None:
                self._found += delta.annotations
        if delta.refusal:
            self._refusal.append(delta.refusal)
        if delta.container is not None:
            self._container = delta.container
        if specific:
            self._own_fields(specific, out)

    def _text(self, text: str, out: list[bytes]) -> None:
        if self._open != "text":
            self._open_block("text", {"type": "text", "text": ""}, out)
        self._texts.append(text)
        out.append(_delta(self._index, b'"text_delta","text":%b' % _encode(text)))

    def _call(self, call: shapes.ToolCall, out: list[bytes]) -> None:
        if call.index is None:
            call.index = len(self._numbers) - (call.id is None)
        self._numbers.add(call.index)
        for piece in self._calls.add(call.index, call):
            self._call_piece(piece, out)

    def _call_piece(self, call: shapes.ToolCall, out: list[bytes]) -> None:
        function = call.function or shapes.Function()
        if call.index != self._call_number:
            block = {"type": "tool_use", "id": call.id or "", "name": function.name or "", "input": {}}
            self._open_block("tool_use", block, out)
            self._call_number = call.index
            self._arguments.clear()
        # The block of a call ends when something else begins, and then has its arguments: `{}` for one without any.
        if function.arguments and self._open == "tool_use":
            self._arguments.append(function.arguments)
            out.append(_delta(self._index, b'"input_json_delta","partial_json":%b' % _encode(function.arguments)))

    def _is_whole_call(self) -> bool:
        return is_json("".join(self._arguments))

    def _reason(self, text: str, details: Sequence[Json], out: list[bytes]) -> None:
        signed = next((one for one in details if text and text_of(one) == text and one.get("signature")), None)
        if signed is not None and self._open == "thinking" and self._detail is None:
            # A signature is for one block, and this piece of reasoning has a signature of its own.
            self._close_block(out)
        if text:
            self._think(text, out)
        for detail in details:
            if is_empty(detail):
                continue
            if is_text(detail):
                self._sign(detail, out, has_text=bool(text))
            else:
                self._whole_block(thinking_block(detail), out)

    def _think(self, text: str, out: list[bytes]) -> None:
        if self._open != "thinking":
            self._open_block("thinking", {"type": "thinking", "thinking": "", "signature": ""}, out)
        self._thinking.append(text)
        out.append(_delta(self._index, b'"thinking_delta","thinking":%b' % _encode(text)))

    def _sign(self, detail: Json, out: list[bytes], *, has_text: bool) -> None:
        """Keeps the entry, which the vendor wants back, until the block ends; its signature ends it. `has_text`: the
        entry's text was just written."""
        if self._open != "thinking":
            self._open_block("thinking", {"type": "thinking", "thinking": "", "signature": ""}, out)
        if not has_text and not self._thinking and text_of(detail):
            self._think(text_of(detail), out)
        self._detail = {**(self._detail or {}), **detail}
        if detail.get("signature"):
            self._close_block(out)

    def _own_fields(self, specific: Mapping[str, Any], out: list[bytes]) -> None:
        blocks = own_blocks(specific.get("content"))
        if blocks is None:
            self._cite(out)
        else:
            self._citations.clear()
            for block in blocks:
                self._own_block(block, out)
        self._specific |= {name: value for name, value in specific.items() if name != "content"}

    def _own_block(self, block: Json, out: list[bytes]) -> None:
        if block["type"] == "text":
            self._repeated_text(block, out)
        elif block["type"] not in _STREAMED:
            self._whole_block(block, out)

    def _repeated_text(self, block: Json, out: list[bytes]) -> None:
        """Adds the citations of a streamed text, and ends its block. Two texts before the first block of Anthropic's
        own stay one block: the chunks do not show the border."""
        written, text = "".join(self._texts), block["text"]
        if not text or not written.startswith(text, self._repeated):
            return
        self._repeated += len(text)
        if self._open != "text":
            return
        for citation in block.get("citations") or ():
            out.append(_delta(self._index, b'"citations_delta","citation":%b' % _encode(citation)))
        if self._repeated == len(written):
            self._close_block(out)

    def _cite(self, out: list[bytes]) -> None:
        annotations, self._citations = self._citations, []
        if not annotations or self._open != "text":
            return
        text = "".join(self._texts)
        for annotation in annotations:
            citation = citation_of(annotation, text)
            if citation is not None:
                out.append(_delta(self._index, b'"citations_delta","citation":%b' % _encode(citation)))

    def _whole_block(self, block: Json, out: list[bytes]) -> None:
        self._close_block(out)
        given = block.get("input") if block["type"] in _WITH_INPUT else None
        self._begin_block({**block, "input": {}} if given else block, out)
        if given:
            text = _encode(given).decode()
            out.append(_delta(self._index, b'"input_json_delta","partial_json":%b' % _encode(text)))
        self._stop_block(out)

    def _open_block(self, kind: Literal["text", "thinking", "tool_use"], block: Json, out: list[bytes]) -> None:
        self._close_block(out)
        self._open = kind
        self._begin_block(block, out)

    def _begin_block(self, block: Json, out: list[bytes]) -> None:
        out.append(_event("content_block_start", {"index": self._index, "content_block": block}))
        if not self._index:
            out.append(_PING)

    def _close_block(self, out: list[bytes]) -> None:
        if not self._open:
            return
        if self._open == "thinking":
            out.append(_delta(self._index, b'"signature_delta","signature":%b' % _encode(self._signature())))
            self._thinking, self._detail = [], None
        self._stop_block(out)

    def _signature(self) -> str:
        """A seal holds the signed text if it is only a part of the block's."""
        detail = self._detail
        if detail is None:
            return UNSIGNED
        text = text_of(detail)
        is_part = detail.get("signature") and text and detail.get("format") != CLAUDE
        if is_part and text != "".join(self._thinking) and "".join(self._thinking).endswith(text):
            return sealed(detail)
        return signature_of(detail)

    def _stop_block(self, out: list[bytes]) -> None:
        out.append(b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n' % self._index)
        self._open = ""
        self._index += 1


def _event(name: str, fields: Mapping[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), _encode({"type": name, **fields}))


def _delta(index: int, fields: bytes) -> bytes:
    return b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":%b}}\n\n' % (
        index,
        fields,
    )
