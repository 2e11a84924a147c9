"""Makes the events of streamGenerateContent: every event is an answer of its own with the new parts
(https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent).

A call comes whole in one part, so calls wait for the end of the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from core.errors import ApplicationError
from gateway.surfaces import shapes
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.checks import Json
from gateway.surfaces.gemini.answer_parts import Signatures, call_part, image_part, own_part, signed_calls
from gateway.surfaces.gemini.errors import error_body
from gateway.surfaces.gemini.finish import (
    FEEDBACK,
    FILTER,
    end_of,
    grounding_of,
    is_blocked,
    logprobs_of,
    origin_of,
    usage_of,
)
from gateway.surfaces.tool_names import restore_names
from integrations.providers.google.messages import image_id
from integrations.providers.google.specifics import PARTS

_encode = msgspec.json.Encoder().encode


class _Call:
    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = self.name = ""
        self.arguments: list[str] = []


class _Candidate:
    """The state of one choice. `texts` are all pieces of its text, `calls` its calls by index; `specific` has the
    vendor's own fields, without the parts of its tools, which are sent at once."""

    __slots__ = ("annotations", "calls", "finish", "has_parts", "images", "refusal", "signatures", "specific", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: dict[int, _Call] = {}
        self.signatures = Signatures()
        self.annotations: list[Json] = []
        self.refusal: list[str] = []
        self.specific: Json = {}
        self.finish: str | None = None
        self.images = 0
        self.has_parts = False

    def add_call(self, piece: shapes.ToolCall) -> None:
        number = piece.index if piece.index is not None else len(self.calls) - (piece.id is None)
        call = self.calls.setdefault(number, _Call())
        call.id = call.id or piece.id or ""
        if piece.function is not None:
            call.name = call.name or piece.function.name or ""
            call.arguments.append(piece.function.arguments or "")

    def last_parts(self) -> list[Json]:
        calls = [call_part(call.id, call.name, "".join(call.arguments)) for call in self.calls.values()]
        parts = signed_calls(calls, self.signatures)
        refusal = "".join(self.refusal)
        if refusal and not parts and not self.has_parts and self.finish != FILTER:
            parts = [{"text": refusal}]
        rest = [one for one in (self.signatures.seal(), *self.signatures.left()) if one]
        return [*parts, *({"text": "", "thoughtSignature": signature} for signature in rest)]

    def end(self) -> Json:
        sources = {} if "groundingMetadata" in self.specific else grounding_of(self.annotations, "".join(self.texts))
        return {**end_of(self.finish, self.specific, "".join(self.refusal)), **sources}


class GeminiStream:
    """`_tail` is the encoded end of every event, which identifies the answer and its model."""

    __slots__ = ("_candidates", "_feedback", "_request_id", "_shows_thoughts", "_tail", "_tool_names", "_usage")

    def __init__(self, request: SurfaceRequest, request_id: str) -> None:
        self._request_id = request_id
        self._shows_thoughts = bool(request.echo)
        self._tool_names = request.tool_names
        self._candidates: dict[int, _Candidate] = {}
        self._tail = b""
        self._usage: Json | None = None
        self._feedback: Any = None

    def feed(self, chunks: Sequence[bytes]) -> bytes:
        out: list[bytes] = []
        for data in chunks:
            self._chunk(data, out)
        return b"".join(out)

    def close(self, chunks: Sequence[bytes]) -> bytes:
        out = [self.feed(chunks)]
        self._begin(shapes.Completion())
        ends = [
            {"content": {"parts": candidate.last_parts(), "role": "model"}, **candidate.end(), "index": index}
            for index, candidate in sorted(self._candidates.items())
            if not (is_blocked(candidate.specific) and not candidate.has_parts)
        ]
        fields: Json = {"candidates": ends} if ends else {}
        if self._feedback is not None:
            fields[FEEDBACK] = self._feedback
        fields["usageMetadata"] = usage_of(self._usage)
        out.append(self._event(_encode(fields)))
        return b"".join(out)

    def fail(self, error: ApplicationError, relayed: bytes = b"") -> bytes:
        # Google writes a failure as a line of JSON without the name of the field, by which its SDKs know it.
        return error_body(error, self._request_id) + b"\n\n"

    def _chunk(self, data: bytes, out: list[bytes]) -> None:
        chunk = shapes.decode(data)
        if chunk.usage is not None:
            self._usage = chunk.usage
        if not self._tail:
            self._begin(chunk)
        for choice in chunk.choices:
            candidate = self._candidates.get(choice.index)
            if candidate is None:
                candidate = self._candidates[choice.index] = _Candidate()
            candidate.finish = choice.finish_reason or candidate.finish
            delta = choice.delta
            if delta is None:
                continue
            if self._tool_names:
                restore_names(delta, self._tool_names)
            if delta.content:
                candidate.texts.append(delta.content)
            if delta.content and choice.logprobs is None and delta.is_text_alone():
                candidate.has_parts = True
                out.append(self._text(delta.content, choice.index))
                continue
            parts = self._parts(delta, candidate)
            if parts:
                candidate.has_parts = True
                out.append(self._of_candidate(parts, choice))

    def _begin(self, chunk: shapes.Completion) -> None:
        if not self._tail:
            self._tail = b"," + _encode(origin_of(chunk.model, chunk.id, self._request_id))[1:]

    def _text(self, text: str, index: int) -> bytes:
        return b'data: {"candidates":[{"content":{"parts":[{"text":%b}],"role":"model"},"index":%d}]%b\n\n' % (
            _encode(text),
            index,
            self._tail,
        )

    def _of_candidate(self, parts: list[Json], choice: shapes.Choice) -> bytes:
        content = {"content": {"parts": parts, "role": "model"}, "index": choice.index}
        return self._event(_encode({"candidates": [{**content, **logprobs_of(choice.logprobs)}]}))

    def _event(self, fields: bytes) -> bytes:
        return b"data: %b%b\n\n" % (fields[:-1], self._tail)

    def _parts(self, delta: shapes.Message, candidate: _Candidate) -> list[Json]:
        parts: list[Json] = []
        candidate.signatures.add(delta.reasoning_details or ())
        if delta.reasoning_content and self._shows_thoughts:
            parts.append({"text": delta.reasoning_content, "thought": True})
        if delta.content:
            parts.append({"text": delta.content})
        parts += [{"text": "", "thoughtSignature": one} for _, _, one in candidate.signatures.stretches()]
        for image in delta.images or ():
            if (part := image_part(image)) is not None:
                signature = candidate.signatures.of(image_id(candidate.images))
                parts.append({**part, "thoughtSignature": signature} if signature else part)
                candidate.images += 1
        for call in delta.tool_calls or ():
            candidate.add_call(call)
        if delta.refusal:
            candidate.refusal.append(delta.refusal)
        candidate.annotations += delta.annotations or ()
        self._own_fields(delta.provider_specific_fields or {}, candidate, parts)
        return parts

    def _own_fields(self, specific: Json, candidate: _Candidate, parts: list[Json]) -> None:
        for name, value in specific.items():
            if name == PARTS and isinstance(value, list):
                parts += [read[1] for entry in value if (read := own_part(entry)) is not None]
            else:
                candidate.specific[name] = value
        self._feedback = specific.get(FEEDBACK) or self._feedback
