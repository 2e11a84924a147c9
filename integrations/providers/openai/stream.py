"""Chunks stay unchanged; usage and finish reason wait for the last one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from integrations.providers.base import StreamEvent
from integrations.providers.common.failures import failure_in_body, is_status_alone
from integrations.providers.common.sse import EventParser, ServerSentEvent
from integrations.providers.common.stream import DONE, DialectStream
from integrations.providers.common.surrogates import lenient
from integrations.providers.common.usage import completed_usage, read_usage, usage_object
from integrations.providers.errors import ProviderError
from integrations.providers.given import Kept, given_in_object
from integrations.providers.openai.finish import failure_of, finish_reason
from integrations.providers.openai.shapes import (
    CHUNK,
    Chunk,
    Delta,
    PlainChunk,
    add_reasoning_content,
    flatten_content,
    has_output,
    replaced,
    time_of,
    with_reasoning_content,
)
from integrations.providers.openai.tools import ToolCalls

_decode_conforming = msgspec.json.Decoder(Chunk).decode
_decode_plain = msgspec.json.Decoder(PlainChunk).decode
_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)
_encode = msgspec.json.Encoder().encode
# The byte is compared as a number, since `in` with a bytes argument first raises and drops an internal error.
_LF = ord("\n")
_CONTENT = b'"content":'


class OpenAIStream(DialectStream[ServerSentEvent]):
    """All chunks get the `id` and `created` of the first: Snowflake sends none, other vendors new ones with each chunk,
    or the current second."""

    has_plain = True

    def __init__(
        self, *, model: str, provider: str, redact: Callable[[ProviderError], None], seed: bytes = b""
    ) -> None:
        """`seed` is the request's body; it and the first chunk make the id if the provider sends none."""
        super().__init__(EventParser(), model=model, provider=provider, redact=redact)
        # `_usage_fields` keeps the provider's own usage object for the last chunk.
        self._usage_fields: dict[str, Any] | None = None
        # `_finished` maps the index of a choice to the choice of its last chunk.
        self._finished: dict[int, dict[str, Any]] = {}
        self._base: dict[str, Any] = {}  # `_base` holds top-level fields of chunks that were held back.
        self._seed = seed
        self._id: str | None = None  # All chunks get the first id once a chunk with a choice has come.
        self._created = 0
        self._tools = ToolCalls()
        self._annotations: dict[int, int] = {}  # `_annotations` counts the annotations of each choice that were sent.
        self._has_output = False  # `_has_output` is True when some of the answer has come.

    def _plain_text(self, data: bytes) -> str:
        # Most other chunks have no such text, and an error of the decoder costs more than this look.
        if data.find(_CONTENT) < 0 or self._finished:
            return ""
        event = self._parser.single(data)
        if not event:
            return ""
        try:
            chunk = _decode_plain(event)
            if not event.isascii():
                event.decode()
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""
        if chunk.id != self._id or chunk.created != self._created or chunk.model != self.model or not self._has_output:
            return ""
        return chunk.choices[0].delta.content

    def _event(self, event: ServerSentEvent, out: list[StreamEvent]) -> None:
        data = event.data
        if data[:6] == DONE:
            self._done = True
            return
        made = self._chunk(data, event.event)
        if made is not None:
            out.append(made)

    def _last_events(self, out: list[StreamEvent]) -> None:
        self._check_ended(self._done or self._finished)
        if not self._finished:
            # Snowflake ends a stream with [DONE] and never sends a reason.
            if failure := failure_of(None, self.provider, has_output=self._has_output):
                raise failure
            self._finished[0] = {"index": 0}
        out += self._last_chunks()

    def _chunk(self, data: bytes, name: str) -> StreamEvent | None:
        if name == "error":
            raise self._error_event(data)
        try:
            chunk = _decode_conforming(data)
            if not data.isascii():
                # The whole chunk is decoded because msgspec checks only the fields that it reads, and the event must be
                # valid UTF-8.
                data.decode()
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._rework(data)
        extension = chunk.x_groq
        if (
            len(chunk.choices) != 1
            or chunk.usage is not None
            or chunk.error is not None
            or (choice := chunk.choices[0]).finish_reason is not None
            or choice.error is not None
            or self._finished
            or (extension is not None and extension.usage is not None)
            or _LF in data  # Data of several lines leaves in one.
        ):
            return self._rework(data)
        if chunk.id != self._id or chunk.created != self._created:
            named = self._with_identity(data, chunk)
            if named is None:
                return self._rework(data)
            data = named
        delta = choice.delta
        if (
            delta.annotations
            or delta.function_call
            or (delta.tool_calls and not self._tools.accept(choice.index, delta.tool_calls))
        ):
            return self._rework(data)
        if (delta.reasoning or delta.reasoning_details) and not delta.reasoning_content:
            named = with_reasoning_content(data, delta)
            if named is None:
                return self._rework(data)
            data = named
        self._seen = True
        self.model = chunk.model or self.model
        output = bool(delta.content) or self._has_more(delta)
        self._has_output = output or self._has_output
        return StreamEvent(data, output, (delta.content or "") if choice.index == 0 else "")

    def _has_more(self, delta: Delta) -> bool:
        self.given += given_in_object(Kept.AUDIO, delta.audio)
        return delta.has_output()

    def _rework(self, data: bytes) -> StreamEvent | None:
        if not data.strip():
            return None
        fields = self._decoded(data)
        self._seen = True
        self._take_usage(fields)
        choices = fields.pop("choices", None)
        if choices:
            self._identify(fields, data)
        kept = [
            choice
            for position, choice in enumerate(choices if isinstance(choices, list) else [])
            if isinstance(choice, dict) and self._keep_choice(choice, position)
        ]
        if isinstance(fields.get("model"), str) and fields["model"]:
            self.model = fields["model"]
        if not kept:
            self._base.update((name, value) for name, value in fields.items() if value is not None and value != "")
            return None
        self._complete_identity(fields)
        fields["choices"] = kept
        first = kept[0]
        content = first["delta"].get("content") if first["index"] == 0 else None
        return StreamEvent(
            msgspec.json.encode(fields),
            any(has_output(choice["delta"]) for choice in kept),
            content if isinstance(content, str) else "",
        )

    def _decoded(self, data: bytes) -> dict[str, Any]:
        try:
            fields = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("a chunk of the stream is not a JSON object") from error
        if fields.get("error") or fields.get("object") == "error" or _is_bare_error(fields):
            self._take_usage(fields)
            raise failure_in_body(fields, provider=self.provider)
        return fields

    def _keep_choice(self, choice: dict[str, Any], position: int) -> bool:
        if choice.get("error"):
            raise failure_in_body(choice, provider=self.provider)
        index = choice.get("index")
        if not isinstance(index, int):
            index = choice["index"] = position
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice["delta"] = {}
        choice.pop("message", None)  # Perplexity repeats the whole answer so far beside each delta.
        flatten_content(delta)
        add_reasoning_content(delta)
        self._number_annotations(index, delta.get("annotations"))
        if isinstance(delta.get("tool_calls"), list):
            self._tools.rewrite(index, delta["tool_calls"], self._id or "")
            if not delta["tool_calls"]:
                del delta["tool_calls"]
        if isinstance(delta.get("function_call"), dict):
            self._tools.rewrite_function(index, delta["function_call"])
        reason = choice.get("finish_reason")
        choice["finish_reason"] = None
        output = has_output(delta)
        self.given += given_in_object(Kept.AUDIO, delta.get("audio"))
        self._has_output = self._has_output or output
        if reason and (failure := failure_of(reason, self.provider, has_output=self._has_output)):
            raise failure
        if reason:
            held = {"index": index} if output else choice
            self._finished[index] = {**held, "finish_reason": reason}
        return output or index not in self._finished

    def _number_annotations(self, index: int, annotations: Any) -> None:
        """OpenRouter sends annotations one by one without indexes, on which the official SDK's stream helper fails."""
        for annotation in annotations if isinstance(annotations, list) else ():
            if isinstance(annotation, dict):
                number = self._annotations.get(index, 0)
                annotation.setdefault("index", number)
                self._annotations[index] = number + 1

    def _take_usage(self, fields: dict[str, Any]) -> None:
        usage = fields.pop("usage", None)
        extension = fields.get("x_groq")
        if isinstance(extension, dict) and "usage" in extension:
            groq_usage = extension.pop("usage")
            usage = usage or groq_usage
        if isinstance(usage, dict) and usage:
            counts = read_usage(usage, fields.get("service_tier"))
            if counts is not None and (counts.is_billed or self.usage is None):
                self._usage_fields, self.usage = usage, counts

    def _with_identity(self, data: bytes, chunk: Chunk) -> bytes | None:
        if not self._id:
            if not chunk.id or chunk.created <= 0:
                return None
            self._id, self._created = chunk.id, chunk.created
            return data
        if chunk.id != self._id:
            data = replaced(data, _encode(chunk.id), _encode(self._id))
        if chunk.created != self._created:
            data = replaced(data, b"%d" % chunk.created, b"%d" % self._created)
        return data or None

    def _identify(self, fields: Mapping[str, Any], data: bytes) -> None:
        if self._id:
            return
        given_id, self._created = fields.get("id"), time_of(fields.get("created"))
        if isinstance(given_id, str) and given_id:
            self._id = given_id
        else:
            digest = blake2b(self._seed + b"\n" + data + b"\n%d" % self._created, digest_size=12)
            self._id = f"chatcmpl-{digest.hexdigest()}"

    def _complete_identity(self, fields: dict[str, Any]) -> None:
        fields["id"], fields["created"] = self._id, self._created
        if not isinstance(fields.get("model"), str):
            fields["model"] = self.model
        fields["object"] = CHUNK

    def _last_chunks(self) -> list[StreamEvent]:
        base = self._base
        self._identify(base, b"")
        self._complete_identity(base)
        ends = [self._end_of_choice(index, self._finished[index]) for index in sorted(self._finished)]
        self.finish_reason = ends[0]["finish_reason"]
        chunks = [{**base, "choices": [end]} for end in ends]
        usage = self._closing_usage()
        if usage is not None:
            chunks[-1]["usage"] = usage
        return self._arguments_of_calls_without() + [StreamEvent(msgspec.json.encode(chunk), False) for chunk in chunks]

    def _arguments_of_calls_without(self) -> list[StreamEvent]:
        chunks = []
        for index, delta in self._tools.missing_arguments():
            choice = {"index": index, "delta": delta, "finish_reason": None}
            chunks.append(StreamEvent(msgspec.json.encode({**self._base, "choices": [choice]}), True))
        return chunks

    def _end_of_choice(self, index: int, choice: dict[str, Any]) -> dict[str, Any]:
        reason = finish_reason(choice.get("finish_reason"), called_tools=self._tools.called(index))
        return {**choice, "delta": {}, "finish_reason": reason}

    def _closing_usage(self) -> dict[str, Any] | None:
        if self.usage is None:
            return None
        fields = self._usage_fields
        return usage_object(self.usage) if fields is None else completed_usage(fields, self.usage)

    def _error_event(self, data: bytes) -> ProviderError:
        try:
            decoded = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            decoded = {"message": data[:2000].decode("utf-8", "replace")}
        return failure_in_body(decoded, provider=self.provider)

    def _error_in(self, decoded: dict[str, Any]) -> ProviderError | None:
        if decoded.get("error") or decoded.get("message"):
            return failure_in_body(decoded, provider=self.provider)
        return None


def _is_bare_error(fields: dict[str, Any]) -> bool:
    if is_status_alone(fields):
        return True
    return "choices" not in fields and any(fields.get(name) for name in ("message", "detail", "errors"))
