"""Stage 9: what a project wants no answer to hold (specification, Guardrails object; design, section 5, Guardrails).

Only for projects with such a check. In `monitor` answers pass as they are and are looked at before their record is
written; in `enforce` they are masked, or refused as long as nothing of them has been sent and broken off after that.
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
from gateway.pipeline.quality import grade_later, hold_to
from gateway.project_settings.guardrails import TrustMode
from gateway.protocol import sse
from gateway.runtime import Runtime
from integrations.providers.base import StreamEvent
from integrations.providers.common.surrogates import lenient

_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)
# As for requests: more is looked at in a thread, so that other streams of the worker go on.
_ON_LOOP_BYTES = 4 * 1024
_threads = ThreadPoolExecutor(2, thread_name_prefix="guardrails-output")

T = TypeVar("T")

logger = logging.getLogger("gateway.guardrails")


class OutputGuard:
    """For one answer. Raises GuardrailError (400) for what must not go out; what was found is in `state.verdicts`.
    Raises ProviderFailedError (500) for what cannot be read."""

    def __init__(self, runtime: Runtime, context: RequestContext, state: RequestState) -> None:
        guardrails = context.snapshot.settings.guardrails
        wanted = context.request.response_format
        self._runtime, self._context, self._state = runtime, context, state
        self._enforced = guardrails.trust_mode is TrustMode.ENFORCE
        self._checks = OutputChecks(guardrails, self._texts, json_content=wanted is not None and wanted.type != "text")
        self._stream = StreamGuard(self._checks)
        self._noted: set[Found] = set()
        self._waiting: list[StreamEvent] = []
        self._least_quality = guardrails.min_quality_score
        self.began = False

    async def whole(self, body: bytes) -> bytes:
        """The chat completion that may go out."""
        if not self._enforced:
            await self._look_at(body)
            return body
        guarded = await self._run([body], lambda: _guarded(self._checks, body))
        self._note()
        await self._grade(guarded)
        return guarded

    async def let_through(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """What of a stream may go out now: nothing before the first output, so that a refusal can still be a status."""
        if not self._enforced:
            self.began = True
            return events
        out = await self._run([event.data for event in events], lambda: self._stream.feed(events))
        self._note()
        if not self.began:
            self._waiting += out
            # An answer that is graded before it goes out goes out whole.
            if self._least_quality is not None or not any(event.has_output for event in out):
                return []
            self.began, out = True, self._waiting
        return out

    async def last(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """What was held, with the last events of the stream; none when it broke."""
        if not self._enforced:
            await self._look_at(assembled(b"".join([*self._state.response, sse.frame_all(events)])))
            return events
        out = await self._run([event.data for event in events], lambda: self._stream.close(events))
        self._note()
        if not self.began:
            out = self._waiting + out
        if self._least_quality is not None:
            if not events:
                # Of an answer that cannot be graded nothing goes out.
                return []
            await self._grade(assembled(sse.frame_all(out)))
        self.began = True
        return out

    async def _look_at(self, body: bytes) -> None:
        """In `monitor`."""
        try:
            await self._run([body], lambda: _guarded(self._checks, body))
        except ProviderFailedError:
            logger.info("guardrail.unreadable request_id=%s", self._state.request_id)
            return
        self._note()
        if self._least_quality is not None and self._state.error is None:
            grade_later(self._least_quality, self._runtime, self._context, self._state, body)

    async def _grade(self, body: bytes) -> None:
        if self._least_quality is not None:
            await hold_to(self._least_quality, self._runtime, self._context, self._state, body)

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
            # Adapters look at what they need of an answer; in what they pass on there may be numbers without end.
            raise ProviderFailedError(f"{self._state.provider}: the answer cannot be read") from error

    def _note(self) -> None:
        """Puts what is new into the state. Raises GuardrailError when it must not go out."""
        blocking = self._checks.blocking()
        for found in blocking:
            self._add(found, GuardrailAction.BLOCKED)
        for found in self._checks.masking():
            self._add(found, GuardrailAction.MASKED)
        if blocking and self._enforced:
            raise GuardrailError(_told(blocking[0]), code=blocking[0].guardrail.value)

    def _add(self, found: Found, action: GuardrailAction) -> None:
        if found not in self._noted:
            self._noted.add(found)
            action = action if self._enforced else GuardrailAction.FLAGGED
            self._state.verdicts += (GuardrailVerdict(found.guardrail, GuardrailStage.OUTPUT, action, found.detail),)


def _guarded(checks: OutputChecks, body: bytes) -> bytes:
    """The bytes themselves when nothing has to be masked."""
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
            # Tokens spell what was masked.
            if choice.get("logprobs") is not None:
                choice["logprobs"] = None
    return msgspec.json.encode({**answer, **beside}) if changed else body


def _told(found: Found) -> str:
    if found.guardrail is Guardrail.BLOCKED_TOOL:
        return f"The answer calls the tool {found.detail!r}, which is blocked in this project"
    return "The answer names a topic that is blocked in this project"
