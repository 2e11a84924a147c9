from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.errors import unusable
from integrations.providers.google.failures import google_failure_in_body
from integrations.providers.google.finish import (
    FILTERED,
    REASONS,
    finish_reason,
    is_blocked,
    read_usage,
    unusable_end,
    with_searches,
)
from integrations.providers.google.parts import UNFINISHED
from integrations.providers.google.response import NO_ANSWER, indexes_of
from integrations.providers.google.shapes import NOTHING, Candidate, Part, Response, UsageMetadata, has, plain
from integrations.providers.usage import Usage


class Ending(msgspec.Struct):
    finished: str | int | None = None
    message: str = ""
    has_content: bool = False
    calls: bool = False
    grounding: dict[str, Any] | None = None

    def read(self, candidate: Candidate) -> str:
        finished = candidate.finish_reason
        if finished and finished != UNFINISHED:
            self.finished = finished
            self.message = candidate.finish_message or self.message
        text = ""
        # Each part that is not a text costs a call, and nearly all parts are texts.
        for part in candidate.content.parts or () if candidate.content is not None else ():
            if part.text is None or part.thought or part.function_call is not None:
                self._note(part)
            else:
                text += part.text
        if text:
            self.has_content = True
        if candidate.grounding_metadata is not NOTHING:
            self._ground(candidate.grounding_metadata)
        return text

    def _note(self, part: Part) -> None:
        if part.function_call is not None:
            self.calls = self.has_content = True
        elif part.text is None and not part.thought and part.inline_data is not None:
            self.has_content = self.has_content or part.inline_data.mime_type.startswith("image/")

    def _ground(self, raw: msgspec.Raw) -> None:
        metadata = plain(raw)
        if isinstance(metadata, dict):
            # A stream may send its sources bit by bit, so the latest value of each field counts.
            self.grounding = {**(self.grounding or {}), **metadata}


class Reading(msgspec.Struct):
    """The answer so far; a whole answer is one event. `endings` are by the candidates' indexes, `counts` the latest
    complete ones."""

    provider: str
    endings: dict[int, Ending] = {}
    counts: UsageMetadata | None = None
    is_blocked: bool = False

    @property
    def is_ended(self) -> bool:
        endings = self.endings
        return self.is_blocked or (bool(endings) and all(one.finished for one in endings.values()))

    def read(self, response: Response, data: bytes) -> str:
        """Reads an event; returns the text that it adds to the first candidate.

        Raises ProviderError for a failure in the event, msgspec.ValidationError for feedback on the prompt of an
        undocumented form.
        """
        counts = response.usage_metadata
        # Vertex sends only a traffic type in early events.
        if counts is not None and (counts.prompt_token_count is not None or counts.total_token_count is not None):
            self.counts = counts
        if response.error is not NOTHING and has(response.error):
            raise google_failure_in_body(plain(msgspec.Raw(data)), provider=self.provider)
        candidates = response.candidates
        if not candidates:
            if response.prompt_feedback is not NOTHING:
                self._block(response)
            return ""
        if len(candidates) > 1:
            return self._several(candidates)
        index = candidates[0].index or 0
        ending = self.endings.get(index)
        if ending is None:
            ending = self.endings[index] = Ending()
        text = ending.read(candidates[0])
        return "" if index else text

    def _several(self, candidates: list[Candidate]) -> str:
        first = ""
        for index, candidate in zip(indexes_of(candidates), candidates, strict=True):
            text = self.endings.setdefault(index, Ending()).read(candidate)
            if not index:
                first += text
        return first

    def _block(self, response: Response) -> None:
        """Vertex AI may refuse a long prompt while the answer is already streaming; it then sends no finish reason."""
        if not is_blocked(response.feedback()):
            return
        self.is_blocked = True
        for ending in self.endings.values():
            ending.finished = ending.finished or "PROHIBITED_CONTENT"

    def finish(self) -> str:
        endings = self.endings
        if not endings:
            if self.is_blocked:
                return FILTERED
            raise unusable(NO_ANSWER, self.provider, usage=self.usage_at(""))
        for ending in endings.values():
            if ending.finished in REASONS:
                continue
            if failure := unusable_end(ending, provider=self.provider, usage=self.usage_at("")):
                raise failure
        first = endings[min(endings)]
        return finish_reason(first.finished, called_tools=first.calls)

    def usage_at(self, model: str) -> Usage | None:
        """None if nothing was counted. A refused prompt uses nothing: no model has read it."""
        if self.counts is None:
            return Usage() if self.is_blocked and not self.endings else None
        usage = read_usage(self.counts)
        # Most answers have no sources, and the generator of `any` would cost more than the loop.
        for ending in self.endings.values():
            if ending.grounding is not None:
                return with_searches(usage, [one.grounding or {} for one in self.endings.values()], model)
        return usage


def has_parts(response: Response) -> bool:
    return any(one.content is not None and bool(one.content.parts) for one in response.candidates or ())
