"""Checks answers against the JSON schema of their request (docs/settings.md, `x-output-contract-violation`).

A violating answer still passes: a header tells the client, and the record says where it went wrong.
"""

from __future__ import annotations

import asyncio
import logging
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
"""The attribute of a record that says why an answer was not checked against its schema."""

# Larger answers are decoded in a thread, so that other requests do not wait for the event loop.
_ON_LOOP_BYTES = 64 * 1024
_MARK = b',"x_output_contract_violation":true}'


class _Message(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None

    @property
    def answer(self) -> str | None:
        if self.content is None or self.tool_calls or self.function_call or (self.refusal and not self.content):
            return None
        if isinstance(self.content, str):
            return self.content
        # The other kinds of parts are reasoning.
        texts = (part.get("text") for part in self.content if part.get("type") == "text")
        return "".join(text for text in texts if isinstance(text, str))


class _Choice(msgspec.Struct):
    message: _Message


class _Completion(msgspec.Struct):
    choices: list[_Choice]


_decode = msgspec.json.Decoder(_Completion).decode


def schema_of(request: ChatCompletionRequest) -> bytes | None:
    response_format = request.response_format
    if response_format is None or response_format.type != "json_schema" or response_format.json_schema is None:
        return None
    schema = response_format.json_schema.get("schema")
    return None if schema is None else bytes(schema)


async def check_schema(schema: bytes, state: RequestState, body: bytes) -> None:
    await _check(schema, state, body, streamed=False)


async def check_schema_of_stream(schema: bytes, state: RequestState, last: list[StreamEvent]) -> list[StreamEvent]:
    """Returns the `last` events, which have not been sent yet.

    On a violation the final event is marked, since the headers have long been sent.
    """
    data = b"".join([*state.answer.parts, *(b"data: %b\n\n" % event.data for event in last)])
    await _check(schema, state, data, streamed=True)
    if not state.answer.contract_violation or not last or not last[-1].data.endswith(b"}"):
        return last
    return [*last[:-1], msgspec.structs.replace(last[-1], data=last[-1].data[:-1] + _MARK)]


async def _check(schema: bytes, state: RequestState, data: bytes, *, streamed: bool) -> None:
    try:
        problem = await _problem(state.snapshot.project_id, schema, data, streamed=streamed)
    except CheckTooLongError:
        state.attributes[UNCHECKED] = "the check took too long"
        logger.warning("contract.unchecked request_id=%s", state.request_id)
        return
    if problem is not None:
        state.answer.contract_violation = True
        state.attributes[VIOLATION] = problem
        logger.info("contract.violated request_id=%s", state.request_id)


async def _problem(project_id: UUID, schema: bytes, data: bytes, *, streamed: bool) -> str | None:
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
    try:
        completion = _decode(assembled(data) if streamed else data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    texts = ((index, choice.message.answer) for index, choice in enumerate(completion.choices))
    return {index: text for index, text in texts if text is not None}
