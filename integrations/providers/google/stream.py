"""Every event of a stream is a response of its own with the new parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from integrations.providers.base import StreamEvent
from integrations.providers.common.completion import Chunks
from integrations.providers.common.stream import DONE, DialectStream
from integrations.providers.errors import ProviderError
from integrations.providers.google.events import Events
from integrations.providers.google.failures import google_failure_in_body
from integrations.providers.google.finish import (
    FILTERED,
    finish_reason,
    is_blocked,
    is_counted,
    read_logprobs,
    read_usage,
    seconds_of,
    unusable_end,
    with_searches,
)
from integrations.providers.google.parts import Call, Choice, Image, Own, Piece, Text, Thought, annotations_of
from integrations.providers.google.response import blocked_answer, completion_id, indexes_of, seed_of
from integrations.providers.google.shapes import Candidate, PromptFeedback, Response, UsageMetadata, decode, has, plain
from integrations.providers.google.specifics import PARTS
from integrations.providers.usage import Usage


class GoogleStream(DialectStream[bytes]):
    """`usage` is read on demand from the counts of the last event."""

    def __init__(self, *, model: str, provider: str, redact: Callable[[ProviderError], None]) -> None:
        self._usage: Usage | None = None
        # The token counts are those of the last event, since every event counts from the start.
        self._counts: UsageMetadata | None = None
        super().__init__(Events(), model=model, provider=provider, redact=redact)
        self._seen = True  # The beginning of the body is not kept, since a body without any event has no other reading.
        self._created = int(time.time())
        self._chunks: Chunks | None = None
        self._seed = ""
        self._choices: dict[int, Choice] = {}
        self._blocked = False
        self._feedback: dict[str, Any] = {}  # The feedback concerns the prompt and goes into the first answer.

    @property
    def usage(self) -> Usage | None:
        if self._counts is not None:
            self._usage, self._counts = read_usage(self._counts), None
        return self._usage

    @usage.setter
    def usage(self, usage: Usage | None) -> None:
        self._usage, self._counts = usage, None

    def _last_events(self, out: list[StreamEvent]) -> None:
        if self._chunks is None:
            raise self._unusable("the stream ended without an answer")
        if not self._blocked and not self._all_finished():
            raise self._unusable("the stream ended before its end was announced")
        for choice in self._choices.values():
            if failure := unusable_end(choice, provider=self.provider, usage=self.usage):
                raise failure
        out += self._end(self._chunks)

    def _event(self, data: bytes, out: list[StreamEvent]) -> None:
        # Google sends no [DONE], but proxies made for OpenAI's streams do.
        if not data.strip() or data[:6] == DONE:
            return
        try:
            response = decode(data)
            feedback = response.feedback() if has(response.prompt_feedback) else None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("an event of the stream is not of the form expected") from error
        if is_counted(response.usage_metadata):
            self._counts = response.usage_metadata
        if has(response.error):
            raise google_failure_in_body(msgspec.json.decode(data), provider=self.provider)
        chunks = self._chunks or self._begin(response, data)
        candidates = response.candidates
        if candidates:
            for index, candidate in zip(indexes_of(candidates), candidates, strict=True):
                self._candidate(chunks, candidate, index, out)
        elif is_blocked(feedback):
            self._block(chunks, feedback, out)
        if feedback is not None:
            self._feedback = {"promptFeedback": plain(response.prompt_feedback)}

    def _begin(self, response: Response, data: bytes) -> Chunks:
        self._seed = seed_of(response, data)
        self.model = response.model_version or self.model
        created = seconds_of(response.create_time)
        self._chunks = Chunks(
            completion_id=completion_id(response, data),
            model=self.model,
            created=self._created if created is None else created,
        )
        return self._chunks

    def _candidate(self, chunks: Chunks, candidate: Candidate, index: int, out: list[StreamEvent]) -> None:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = Choice(index, self._seed)
            out.append(chunks.role(index))
        logprobs = read_logprobs(candidate.logprobs_result)
        for piece in choice.read(candidate):
            if logprobs is not None and isinstance(piece, Text):
                out.append(chunks.text(piece.text, index, logprobs=logprobs))
                logprobs = None
            else:
                out.append(_written(chunks, piece, index))

    def _block(self, chunks: Chunks, feedback: PromptFeedback | None, out: list[StreamEvent]) -> None:
        """Vertex AI may refuse a long prompt while the answer is already streaming."""
        for choice in self._choices.values():
            choice.cut_by_filter()
        if self._choices or self._blocked:
            return
        out.append(chunks.role())
        self._blocked = True
        self.finish_reason = FILTERED
        if self.usage is None:
            self.usage = Usage()  # No model has read the prompt, so nothing was used.
        refusal = blocked_answer(feedback).refusal
        if refusal:
            out.append(chunks.delta({"refusal": refusal}))

    def _all_finished(self) -> bool:
        return bool(self._choices) and all(choice.finished for choice in self._choices.values())

    def _end(self, chunks: Chunks) -> list[StreamEvent]:
        reasons = {
            index: finish_reason(choice.finished, called_tools=choice.calls > 0)
            for index, choice in sorted(self._choices.items())
        } or {0: FILTERED}
        self.finish_reason = next(iter(reasons.values()))
        self.usage = with_searches(self.usage, [choice.grounding for choice in self._choices.values()], self.model)
        return [*self._remarks(chunks, reasons), *chunks.last(reasons, self.usage)]

    def _remarks(self, chunks: Chunks, reasons: dict[int, str]) -> Iterator[StreamEvent]:
        for index, choice in self._choices.items():
            annotations = annotations_of(choice)
            if annotations:
                yield chunks.delta({"annotations": annotations}, index)
            if reasons[index] == FILTERED and not choice.length and choice.message:
                yield chunks.delta({"refusal": choice.message}, index)
            if specific := choice.specific():
                yield chunks.specific(specific, index)
        if self._feedback:
            yield chunks.specific(self._feedback, min(reasons))


def _written(chunks: Chunks, piece: Piece, index: int) -> StreamEvent:
    match piece:
        case Text():
            return chunks.text(piece.text, index)
        case Thought():
            return chunks.reasoning(piece.text, piece.details, index)
        case Call():
            return chunks.tool_call(piece.position, piece.id, piece.name, piece.arguments, index, **piece.extra)
        case Own():
            return chunks.specific({PARTS: [piece.entry]}, index)
        case Image():
            return chunks.delta({"images": [piece.entry]}, index)
