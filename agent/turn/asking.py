from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any

import msgspec

from agent.turn.deltas import Frames, PartialAnswer
from agent.worker.limits import OUTPUT_CHARACTERS
from analytics.request_log.sources import Source
from core.api.authentication import key_id_of
from gateway.pipeline.internal_client import Caller, InternalRequest
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot

SOURCE = Source.AGENT.value
"""The source of the agent's requests in the request log."""
ACTOR = "actor"
"""The attribute of their records that says who asked the agent: `key:<id>` or `user:<name>`."""

_NO_ANSWER = "The model gave no answer."
_TOO_LONG = f"The answer was stopped: it grew beyond {OUTPUT_CHARACTERS} characters."


class ModelFailedError(Exception):
    pass


def caller(*, actor: str, conversation_id: Any, typed: Iterable[str]) -> Caller:
    """`typed` has the users' own words, which the project's input guardrails check."""
    return Caller(
        SOURCE, key_id_of(actor), session_id=str(conversation_id), attributes={ACTOR: actor}, typed=tuple(typed)
    )


class ModelCall:
    """One request to the model. `answer` grows while `texts()` runs, and keeps the part before an interruption."""

    def __init__(
        self, runtime: Runtime, snapshot: ProjectSnapshot, who: Caller, body: dict[str, Any], seconds: float
    ) -> None:
        encoded = msgspec.json.encode({**body, "stream": True})
        self._request = InternalRequest(runtime, snapshot, who, encoded, seconds)
        self.answer = PartialAnswer()

    @property
    def request_id(self) -> str:
        return self._request.request_id

    async def texts(self, room: int) -> AsyncGenerator[str]:
        """Raises ModelFailedError if the model gives no answer, breaks off, or exceeds `room` characters."""
        frames = Frames()
        async with aclosing(self._request.parts()) as parts:
            async for part in parts:
                new = "".join([self.answer.add(chunk) for chunk in frames.feed(part)])
                if new:
                    yield new
                if self.answer.size > room:
                    raise ModelFailedError(_TOO_LONG)
        answer = self._request.answer()
        if answer.error is not None:
            raise ModelFailedError(answer.error.message)
        if not self.answer.text and not self.answer.calls:
            raise ModelFailedError(_NO_ANSWER)
