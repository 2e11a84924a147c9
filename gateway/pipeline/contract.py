"""Whether an answer keeps to the JSON schema that the request asked for (specification, x-output-contract-violation).

An answer that does not is passed through: the client is told, and the record says where it went wrong.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any
from uuid import UUID

import msgspec

from analytics.shipper.streamed import assembled
from gateway.contract.checker_process import CheckTooLongError
from gateway.contract.checking import first_violation, reason
from gateway.contract.complexity import is_cheap
from gateway.contract.lanes import check_lanes
from gateway.pipeline.context import RequestState
from gateway.protocol.wire import ChatCompletionRequest
from integrations.providers.base import StreamEvent

logger = logging.getLogger("gateway.request")

VIOLATION = "contract_violation"
"""The attribute of a record that says where an answer left its schema."""
UNCHECKED = "contract_unchecked"
"""The attribute of a record whose answer was not held against its schema, and why."""

# Larger answers are taken apart in a thread: other requests wait for the loop meanwhile.
_ON_LOOP_BYTES = 64 * 1024
_MARK = b',"x_output_contract_violation":true}'


class _Message(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None

    @property
    def answer(self) -> str | None:
        """The text that has to be of the schema. A tool call or a refusal is no answer in its sense."""
        if self.content is None or self.tool_calls or self.function_call or (self.refusal and not self.content):
            return None
        if isinstance(self.content, str):
            return self.content
        # Reasoning is another kind of part.
        texts = (part.get("text") for part in self.content if part.get("type") == "text")
        return "".join(text for text in texts if isinstance(text, str))


class _Choice(msgspec.Struct):
    message: _Message


class _Completion(msgspec.Struct):
    choices: list[_Choice]


_decode = msgspec.json.Decoder(_Completion).decode


def schema_of(request: ChatCompletionRequest) -> bytes | None:
    """The JSON of the schema that the answer's content has to satisfy."""
    wanted = request.response_format
    if wanted is None or wanted.type != "json_schema" or wanted.json_schema is None:
        return None
    schema = wanted.json_schema.get("schema")
    return None if schema is None else bytes(schema)


async def hold_whole(schema: bytes, state: RequestState, body: bytes) -> None:
    """Notes in the state whether the chat completion `body` violates the schema."""
    await _hold(schema, state, body, streamed=False)


async def hold_stream(schema: bytes, state: RequestState, last: list[StreamEvent]) -> list[StreamEvent]:
    """The same for what was streamed, with the last events still to come. Those come back, marked if need be: the
    headers have long been sent."""
    data = b"".join([*state.response, *(b"data: %b\n\n" % event.data for event in last)])
    await _hold(schema, state, data, streamed=True)
    if not state.contract_violation or not last or not last[-1].data.endswith(b"}"):
        return last
    return [*last[:-1], replace(last[-1], data=last[-1].data[:-1] + _MARK)]


async def _hold(schema: bytes, state: RequestState, data: bytes, *, streamed: bool) -> None:
    try:
        problem = await _problem(state.snapshot.project_id, schema, data, streamed=streamed)
    except CheckTooLongError:
        state.attributes[UNCHECKED] = "the check took too long"
        logger.warning("contract.unchecked request_id=%s", state.request_id)
        return
    if problem is not None:
        state.contract_violation = True
        state.attributes[VIOLATION] = problem
        logger.info("contract.violated request_id=%s", state.request_id)


async def _problem(project_id: UUID, schema: bytes, data: bytes, *, streamed: bool) -> str | None:
    """Where the first content that violates the schema does so, without a word of it; None when none does."""
    if len(data) <= _ON_LOOP_BYTES:
        answers = _answers(data, streamed)
    else:
        answers = await asyncio.to_thread(_answers, data, streamed)
    if answers is None:
        return "the answer is no chat completion"
    if not answers:
        return None
    texts = list(answers.values())
    if is_cheap(schema, sum(map(len, texts))):
        index = first_violation(schema, texts)
        found = None if index is None else (index, reason(schema, texts[index]))
    else:
        found = await check_lanes.violation(project_id, schema, texts)
    return None if found is None else f"choices[{list(answers)[found[0]]}]: {found[1]}"


def _answers(data: bytes, streamed: bool) -> dict[int, str] | None:
    """The texts to hold against the schema, by their place among the choices; None for what cannot be read."""
    try:
        completion = _decode(assembled(data) if streamed else data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    texts = ((index, choice.message.answer) for index, choice in enumerate(completion.choices))
    return {index: text for index, text in texts if text is not None}
