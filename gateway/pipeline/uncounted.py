"""Completes usage that a provider has not counted: every answer states its usage, and an estimate is marked.

A provider that states no count, or 0 tokens for a prompt or for an answer that holds something, has not counted it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.base import ParsedResponse, StreamEvent
from integrations.providers.common.usage import restated_usage, usage_object
from integrations.providers.native import NativeAdapter
from integrations.providers.usage import Usage, estimated_tokens

FILTERED = "content_filter"
# The model has not written these fields of a message, or other fields hold what it has.
_NOT_WRITTEN = frozenset({"role", "provider_specific_fields"})
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


def completed(stated: Usage | None, prompt_tokens: int, output_bytes: int) -> Usage:
    """Fills in the stated usage with estimates: `prompt_tokens`, and the tokens in `output_bytes` of an answer.

    For an answer without output, what is stated stays.
    """
    output = estimated_tokens(output_bytes)
    if stated is None:
        return Usage(prompt_tokens, output, estimated=True)
    if not output or (stated.prompt_tokens and stated.completion_tokens):
        return stated
    if stated.estimated:
        return _divided(stated, prompt_tokens, output)
    return msgspec.structs.replace(
        stated,
        prompt_tokens=stated.prompt_tokens or prompt_tokens,
        completion_tokens=stated.completion_tokens or output,
        billed_prompt_tokens=stated.billed_prompt_tokens or None,
        billed_completion_tokens=stated.billed_completion_tokens or None,
        estimated=True,
    )


def _divided(total: Usage, prompt_tokens: int, output_tokens: int) -> Usage:
    """Divides a total by the estimates. What both do not explain is output, such as hidden reasoning."""
    tokens = total.prompt_tokens
    if prompt_tokens + output_tokens > tokens:
        prompt_tokens = tokens * prompt_tokens // (prompt_tokens + output_tokens)
    prompt = max(1, min(prompt_tokens, tokens - 1))
    read = min(total.cache_read_tokens, prompt)
    return msgspec.structs.replace(
        total,
        prompt_tokens=prompt,
        completion_tokens=tokens - prompt,
        cache_read_tokens=read,
        cache_write_tokens=min(total.cache_write_tokens, prompt - read),
    )


def with_usage(answer: ParsedResponse, prompt_tokens: int, native: NativeAdapter | None) -> ParsedResponse:
    """Completes the usage of a whole answer; zeros if a filter answered in place of the model.

    A body in the client's own protocol stays as it is; `native` is the adapter of that protocol, None for a chat
    completion.
    """
    if native is not None:
        body = native.as_chat(answer.body, stream=False)
        output_bytes = _output_bytes(_decode(body)) if body else len(answer.body)
        return msgspec.structs.replace(answer, usage=completed(answer.usage, prompt_tokens, output_bytes))
    fields = _decode(answer.body)
    if answer.finish_reason == FILTERED and not any(one["message"].get("content") for one in fields["choices"]):
        usage = answer.usage or Usage()
    else:
        usage = completed(answer.usage, prompt_tokens, _output_bytes(fields))
    if usage is answer.usage:
        return answer
    of_provider = fields.get("usage")
    fields["usage"] = restated_usage(of_provider if isinstance(of_provider, dict) else {}, usage)
    return msgspec.structs.replace(answer, body=_encode(fields), usage=usage)


def _output_bytes(completion: dict[str, Any]) -> int:
    fields = [
        value
        for choice in completion.get("choices") or ()
        for name, value in (choice.get("message") or {}).items()
        if value and name not in _NOT_WRITTEN
    ]
    return sum(len(_encode(value)) for value in fields)


def without_usage(events: list[StreamEvent]) -> list[StreamEvent]:
    last = events[-1]
    zeros = {**_decode(last.data), "usage": usage_object(Usage())}
    return [*events[:-1], StreamEvent(_encode(zeros), last.has_output, last.text)]
