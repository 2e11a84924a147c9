"""Usage of answers whose provider has not counted tokens: every answer states its usage, and an estimate is marked."""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.base import ParsedResponse, StreamEvent
from integrations.providers.common.usage import usage_object
from integrations.providers.usage import Usage, estimated_tokens

_FILTERED = "content_filter"
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


def with_usage(answer: ParsedResponse, prompt_bytes: int, *, is_native: bool = False) -> ParsedResponse:
    """Returns the whole answer with estimated usage, or with zeros where a filter answered in place of the model. The
    body of an answer in the client's own protocol (`is_native`) stays as it is."""
    if is_native:
        return msgspec.structs.replace(answer, usage=estimate(prompt_bytes, len(answer.body)))
    body = _decode(answer.body)
    messages = [choice.get("message") or {} for choice in body["choices"]]
    if answer.finish_reason == _FILTERED and not any(message.get("content") for message in messages):
        usage = Usage()
    else:
        usage = estimate(prompt_bytes, sum(len(_encode(message)) for message in messages))
    body["usage"] = usage_object(usage)
    return msgspec.structs.replace(answer, body=_encode(body), usage=usage)


def without_usage(events: list[StreamEvent]) -> list[StreamEvent]:
    """Returns the last events of a stream with zeros in place of the estimate, where a filter answered in place of the
    model."""
    last = events[-1]
    zeros = {**_decode(last.data), "usage": usage_object(Usage())}
    return [*events[:-1], StreamEvent(_encode(zeros), last.has_output, last.text)]


def estimate(prompt_bytes: int, output_bytes: int) -> Usage:
    return Usage(estimated_tokens(prompt_bytes), estimated_tokens(output_bytes), estimated=True)
