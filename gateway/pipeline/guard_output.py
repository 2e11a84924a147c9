"""Stage 9: output guardrails, for contents that a project forbids in answers (docs/guardrails-answers.md).

The stage runs only for projects with such a check. In `monitor` answers pass as they are and are checked before their
record is written. In `enforce` they are masked, refused while nothing of them has been sent, or else broken off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from analytics.shipper.streamed import assembled
from gateway.errors import GuardrailError, ProviderFailedError
from gateway.guardrails.output.answer import Found, OutputChecks
from gateway.guardrails.output.stream import StreamGuard
from gateway.guardrails.texts import text_segments
from gateway.guardrails.verdicts import Guardrail, GuardrailAction, GuardrailStage, GuardrailVerdict
from gateway.pipeline.context import RequestContext, RequestState
from gateway.pipeline.quality import QualityCheck
from gateway.project_settings.guardrails import TrustMode
from gateway.protocol import sse
from gateway.runtime.runtime import Runtime
from integrations.providers.base import StreamEvent
from integrations.providers.common.surrogates import lenient

_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)
# Larger answers are checked in a thread, so that other streams of the worker go on.
_ON_LOOP_BYTES = 4 * 1024
_threads = ThreadPoolExecutor(2, thread_name_prefix="guardrails-output")

T = TypeVar("T")

logger = logging.getLogger("gateway.guardrails")


class OutputGuard:
    """The output checks of one answer; their findings are added to `state.verdicts`.

    Methods raise GuardrailError (400) if the answer must not go out, ProviderFailedError (500) if it cannot be read.
    """

    def __init__(self, runtime: Runtime, context: RequestContext, state: RequestState) -> None:
        guardrails = context.snapshot.settings.guardrails
        response_format = context.request.response_format
        self._context, self._state = context, state
        self._enforced = guardrails.trust_mode is TrustMode.ENFORCE
        is_json = response_format is not None and response_format.type != "text"
        self._checks = OutputChecks(guardrails, self._texts, json_content=is_json)
        self._stream = StreamGuard(self._checks)
        self._noted: set[Found] = set()
        self._waiting: list[StreamEvent] = []
        score = guardrails.min_quality_score
        self._quality = None if score is None else QualityCheck(runtime, context, state, score)
        self.began = False

    async def whole(self, body: bytes) -> bytes:
        if not self._enforced:
            await self._look_at(body)
            return body
        guarded = await self._run([body], lambda: _guarded(self._checks, body))
        self._note()
        if self._quality is not None:
            await self._quality.require(guarded)
        return guarded

    async def let_through(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """Returns nothing before the first output, so that a refusal can still be a status."""
        if not self._enforced:
            self.began = True
            return events
        out = await self._run([event.data for event in events], lambda: self._stream.feed(events))
        self._note()
        if not self.began:
            self._waiting += out
            # An answer that is graded first goes out whole.
            if self._quality is not None or not any(event.has_output for event in out):
                return []
            self.began, out = True, self._waiting
        return out

    async def last(self, events: list[StreamEvent]) -> list[StreamEvent]:
        if not self._enforced:
            await self._look_at(assembled(b"".join([*self._state.answer.parts, sse.frame_all(events)])))
            return events
        out = await self._run([event.data for event in events], lambda: self._stream.close(events))
        self._note()
        if not self.began:
            out = self._waiting + out
        if self._quality is not None:
            if not events:
                # A broken stream cannot be graded, so nothing of it goes out.
                return []
            await self._quality.require(assembled(sse.frame_all(out)))
        self.began = True
        return out

    async def _look_at(self, body: bytes) -> None:
        try:
            await self._run([body], lambda: _guarded(self._checks, body))
        except ProviderFailedError:
            logger.info("guardrail.unreadable request_id=%s", self._state.request_id)
            return
        self._note()
        if self._quality is not None and self._state.error is None:
            self._quality.grade_later(body)

    def _texts(self) -> list[str]:
        return [segment.text for segment in text_segments(self._context.fields)]

    async def _run(self, data: list[bytes], work: Callable[[], T]) -> T:
        size = sum(map(len, data))
        if self._checks.masks.will_read_texts and any(b"//" in piece for piece in data):
            size += len(self._context.body)
        try:
            if size <= _ON_LOOP_BYTES:
                return work()
            return await asyncio.get_running_loop().run_in_executor(_threads, work)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # An adapter decodes only the fields that it needs; the others may hold numbers without end.
            raise ProviderFailedError(f"{self._state.routing.provider}: the answer cannot be read") from error

    def _note(self) -> None:
        blocking = self._checks.blocking()
        for found in blocking:
            self._add(found, GuardrailAction.BLOCKED)
        for found in self._checks.masking():
            self._add(found, GuardrailAction.MASKED)
        if blocking and self._enforced:
            raise GuardrailError(_message(blocking[0]), code=blocking[0].guardrail.value)

    def _add(self, found: Found, action: GuardrailAction) -> None:
        if found not in self._noted:
            self._noted.add(found)
            action = action if self._enforced else GuardrailAction.FLAGGED
            self._state.verdicts += (GuardrailVerdict(found.guardrail, GuardrailStage.OUTPUT, action, found.detail),)


def _guarded(checks: OutputChecks, body: bytes) -> bytes:
    if not body:
        return body
    answer = _decode(body)
    beside = {name: value for name, value in answer.items() if name != "choices"}
    changed = checks.reads_texts and checks.guard_value(beside)
    choices = answer.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        message = choice.get("message") if isinstance(choice, dict) else None
        if isinstance(message, dict) and checks.guard_message(message):
            changed = True
            # The log probabilities name the tokens that were masked.
            if choice.get("logprobs") is not None:
                choice["logprobs"] = None
    return msgspec.json.encode({**answer, **beside}) if changed else body


def _message(found: Found) -> str:
    if found.guardrail is Guardrail.BLOCKED_TOOL:
        return f"The answer calls the tool {found.detail!r}, which is blocked in this project"
    return "The answer names a topic that is blocked in this project"
