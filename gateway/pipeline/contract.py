"""Whether an answer keeps to the JSON schema that the request asked for (specification, x-output-contract-violation).

An answer that does not is passed through: the client is told, and the record says where it went wrong.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jsonschema_rs
import msgspec

from analytics.shipper.streamed import assembled
from gateway.pipeline.context import Account
from gateway.wire import ChatCompletionRequest
from integrations.providers.base import StreamEvent

logger = logging.getLogger("gateway.request")

VIOLATION = "contract_violation"
"""The attribute of a record that says where an answer left its schema."""

# Larger answers are looked at in a thread: other requests wait for the loop meanwhile.
_ON_LOOP_BYTES = 64 * 1024
_REMEMBERED_SCHEMA_BYTES = 64 * 1024
_PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000)
_MARK = b',"x_output_contract_violation":true}'


class _Message(msgspec.Struct):
    content: str | None = None


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


async def hold_whole(schema: bytes, account: Account, body: bytes) -> None:
    """Notes in the account whether the chat completion `body` violates the schema."""
    await _hold(schema, account, body, streamed=False)


async def hold_stream(schema: bytes, account: Account, last: list[StreamEvent]) -> list[StreamEvent]:
    """The same for what was streamed, with the last events still to come. Those come back, marked if need be: the
    headers have long been sent."""
    data = b"".join([*account.response, *(b"data: %b\n\n" % event.data for event in last)])
    await _hold(schema, account, data, streamed=True)
    if not account.contract_violation or not last or not last[-1].data.endswith(b"}"):
        return last
    return [*last[:-1], replace(last[-1], data=last[-1].data[:-1] + _MARK)]


async def _hold(schema: bytes, account: Account, data: bytes, *, streamed: bool) -> None:
    if len(data) + len(schema) <= _ON_LOOP_BYTES:
        problem = _problem(schema, data, streamed)
    else:
        problem = await asyncio.to_thread(_problem, schema, data, streamed)
    if problem is not None:
        account.contract_violation = True
        account.attributes[VIOLATION] = problem
        logger.info("contract.violated request_id=%s", account.request_id)


def _problem(schema: bytes, data: bytes, streamed: bool) -> str | None:
    """Where the first content that violates the schema does so, without a word of it; None when none does."""
    validator = _validator(schema) if len(schema) <= _REMEMBERED_SCHEMA_BYTES else _compiled(schema)
    if validator is None:
        return None
    try:
        answer = _decode(assembled(data) if streamed else data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "the answer is no chat completion"
    for index, choice in enumerate(answer.choices):
        # A tool call or a refusal is no answer in the schema's sense.
        if choice.message.content is not None:
            problem = _violation(validator, choice.message.content)
            if problem:
                return f"choices[{index}]: {problem}"
    return None


def _violation(validator: Any, content: str) -> str:
    try:
        instance = json.loads(content)
    except (ValueError, RecursionError):
        return "not JSON"
    try:
        error = next(iter(validator.iter_errors(instance)), None)
    except ValueError:
        return "a number that no schema can be held against"
    if error is None:
        return ""
    return f"{_path(error.schema_path)} fails"


def _path(parts: list[str | int]) -> str:
    # Of the schema, which is the request's own, and not of the content, whose names may be anybody's.
    return "/".join(["#", *map(str, parts)])[:500]


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> Any:
    return _compiled(schema)


def _compiled(schema: bytes) -> Any:
    """None for what is no schema: providers refuse it or answer as they see fit."""
    try:
        # Offline: a reference in a schema must not make the gateway call an address.
        return jsonschema_rs.validator_for(
            json.loads(schema), offline=True, pattern_options=_PATTERNS, validate_formats=False
        )
    except (ValueError, RecursionError, TypeError) as error:
        logger.info("contract.unreadable error=%s", type(error).__name__)
        return None
