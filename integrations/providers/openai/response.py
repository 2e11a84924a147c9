from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from integrations.providers.base import ChatRequest, ParsedResponse
from integrations.providers.common.failures import failure_in_body, is_status_alone
from integrations.providers.common.surrogates import lenient
from integrations.providers.common.usage import completed_usage, read_usage
from integrations.providers.errors import ProviderError, unusable
from integrations.providers.given import NOTHING_GIVEN, Kept, given, given_in_object
from integrations.providers.openai.finish import failure_of, finish_reason
from integrations.providers.openai.shapes import (
    COMPLETION,
    Choice,
    Completion,
    ToolCall,
    UsageCounts,
    add_reasoning_content,
    flatten_content,
    has_output,
    made_up_id,
    time_of,
    whole_arguments,
)
from integrations.providers.usage import Usage

_to_builtins = msgspec.to_builtins  # msgspec leaves absent fields out when it converts a struct to a dictionary.
_decode_conforming = msgspec.json.Decoder(Completion).decode
_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)


def parse_response(request: ChatRequest, body: bytes, *, provider: str) -> ParsedResponse:
    return conforming(body) or _complete(request, body, provider)


def conforming(body: bytes) -> ParsedResponse | None:
    try:
        completion = _decode_conforming(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    counts = completion.usage
    if not completion.choices or completion.error or not completion.id or completion.created <= 0:
        return None
    if counts.prompt_tokens <= 0 or counts.completion_tokens <= 0:
        # Other names, or the total, may say what was counted.
        return None
    for choice in completion.choices:
        if not _conforms(choice):
            return None
    audio = completion.choices[0].message.audio
    return ParsedResponse(
        body=body,
        model=completion.model,
        finish_reason=completion.choices[0].finish_reason,
        usage=_usage(counts, completion.service_tier),
        given=NOTHING_GIVEN if audio is None else given(Kept.AUDIO, audio.id),
    )


def _conforms(choice: Choice) -> bool:
    reason, message = choice.finish_reason, choice.message
    if (message.reasoning or message.reasoning_details) and not message.reasoning_content:
        return False
    if message.function_call or (message.tool_calls and not _are_whole(message.tool_calls)):
        return False
    if reason == "stop" and not message.tool_calls:
        return not choice.error  # `finish_reason` says the same.
    return not choice.error and reason == finish_reason(reason, called_tools=bool(message.tool_calls))


def _are_whole(calls: list[ToolCall]) -> bool:
    for call in calls:
        if not call.id or (call.function is not None and not call.function.arguments.strip()):
            return False
    return len(calls) == 1 or len({call.id for call in calls}) == len(calls)


def _usage(counts: UsageCounts, service_tier: object) -> Usage | None:
    prompt, completion = counts.prompt_tokens, counts.completion_tokens
    if not service_tier and counts == UsageCounts(prompt, completion, counts.total_tokens):
        return Usage(prompt, completion)
    return read_usage(_to_builtins(counts), service_tier)


def _complete(request: ChatRequest, body: bytes, provider: str) -> ParsedResponse:
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unusable("the answer is not a JSON object", provider) from error
    choices = answer.get("choices")
    is_error = not isinstance(choices, list) and (answer.get("message") or answer.get("detail"))
    if answer.get("error") or is_error or is_status_alone(answer):
        raise failure_in_body(answer, provider=provider)
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, dict) for choice in choices):
        raise unusable("the answer holds no choice", provider)
    if not isinstance(answer.get("id"), str) or not answer["id"]:
        # The id is derived from the body, so that the same bytes give the same completion.
        answer["id"] = f"chatcmpl-{hashlib.sha256(body).hexdigest()[:24]}"
    try:
        answer["choices"] = [
            _completed_choice(choice, index, provider, answer["id"]) for index, choice in enumerate(choices)
        ]
    except ProviderError as error:
        error.usage = error.usage or _completed_usage(answer)
        raise
    answer["object"] = COMPLETION
    answer["created"] = time_of(answer.get("created"))
    if not isinstance(answer.get("model"), str):
        answer["model"] = request.model
    usage = _completed_usage(answer)
    return ParsedResponse(
        body=msgspec.json.encode(answer),
        model=answer["model"],
        finish_reason=answer["choices"][0]["finish_reason"],
        usage=usage,
        given=given_in_object(Kept.AUDIO, answer["choices"][0]["message"].get("audio")),
    )


def _completed_usage(answer: dict[str, Any]) -> Usage | None:
    usage = answer.get("usage")
    if not isinstance(usage, dict) or not usage:
        return None
    counts = read_usage(usage, answer.get("service_tier"))
    if counts is not None:
        answer["usage"] = completed_usage(usage, counts)
    return counts


def _completed_choice(choice: dict[str, Any], position: int, provider: str, answer_id: str) -> dict[str, Any]:
    if choice.get("error"):
        raise failure_in_body(choice, provider=provider)
    message = choice.get("message")
    if message is None and choice.get("finish_reason"):
        # Azure leaves the message out of an answer that its content filter stopped.
        message = choice["message"] = {}
    if not isinstance(message, dict):
        raise unusable("a choice holds no message", provider)
    message.setdefault("role", "assistant")
    message.setdefault("content", None)
    flatten_content(message)
    add_reasoning_content(message)
    _complete_arguments(message.get("function_call"))
    tool_calls = message.get("tool_calls")
    ids: set[str] = set()
    for number, call in enumerate(tool_calls if isinstance(tool_calls, list) else []):
        if isinstance(call, dict):
            _complete_tool_call(call, ids, made_up_id(answer_id, position, number))
    if failure := failure_of(choice.get("finish_reason"), provider, has_output=has_output(message)):
        raise failure
    if not isinstance(choice.get("index"), int):
        choice["index"] = position
    choice["finish_reason"] = finish_reason(choice.get("finish_reason"), called_tools=bool(tool_calls))
    return choice


def _complete_tool_call(call: dict[str, Any], ids: set[str], made_up: str) -> None:
    if not isinstance(call.get("id"), str) or not call["id"] or call["id"] in ids:
        call["id"] = made_up
    ids.add(call["id"])
    call.setdefault("type", "function")
    _complete_arguments(call.get("function"))


def _complete_arguments(function: Any) -> None:
    if isinstance(function, dict):
        function["arguments"] = whole_arguments(function.get("arguments"))
