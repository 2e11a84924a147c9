"""Reads an answer of each surface with the vendor's official SDK, to one form that can be compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anthropic.types import Message
from google.genai.types import Candidate, GenerateContentResponse, GenerateContentResponseUsageMetadata, Part
from openai import omit
from openai._models import construct_type_unchecked
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.completion_usage import CompletionUsage
from openai.types.responses import Response, ResponseUsage

from integrations.providers.common.usage import read_usage
from integrations.providers.usage import Usage
from tests.gateway.native import canonical
from tests.gateway.surfaces.gemini.clients import read_stream as stream_content
from tests.gateway.surfaces.gemini.clients import read_whole as read_content
from tests.gateway.surfaces.messages.clients import read_stream, read_whole
from tests.gateway.surfaces.responses.chunks import events_of, read_by_the_sdk

_STOP_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_FINISH_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}


@dataclass(frozen=True)
class Answer:
    """The first choice of an answer. `calls` are (name, arguments as JSON with sorted keys); `finish` is a finish
    reason of chat completions; `usage` is (prompt, cache read, completion), None where the provider reported none."""

    text: str
    reasoning: str
    refusal: str
    calls: tuple[tuple[str, str], ...]
    finish: str
    usage: tuple[int, int, int] | None


def of_chat(body: bytes) -> Answer:
    return _of_completion(construct_type_unchecked(type_=ChatCompletion, value=json.loads(body)))


def of_chat_stream(frames: bytes) -> Answer:
    state = ChatCompletionStreamState(input_tools=omit, response_format=omit)
    for data in chat_payloads(frames):
        state.handle_chunk(construct_type_unchecked(type_=ChatCompletionChunk, value=data))
    return _of_completion(state.current_completion_snapshot)


def chat_payloads(frames: bytes) -> list[dict[str, Any]]:
    """Returns the chunks of a stream. Asserts that the stream ends as the vendor's do."""
    *events, last, rest = frames.decode().split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def of_completions(body: bytes) -> Answer:
    return _of_texts([Completion.model_validate(json.loads(body))])


def of_completions_stream(frames: bytes) -> Answer:
    return _of_texts([construct_type_unchecked(type_=Completion, value=data) for data in chat_payloads(frames)])


def of_responses(body: bytes) -> Answer:
    return _of_response(Response.model_validate(json.loads(body)))


def of_responses_stream(frames: bytes) -> Answer:
    events = events_of(frames)
    if events[-1]["type"] == "response.incomplete":
        # The SDK puts together complete responses alone; of others it hands on the last event.
        return _of_response(Response.model_validate(events[-1]["response"]))
    return _of_response(read_by_the_sdk(events))


def of_messages(body: bytes) -> Answer:
    return _of_message(read_whole(body))


def of_messages_stream(frames: bytes) -> Answer:
    return _of_message(read_stream(frames))


def of_gemini(body: bytes) -> Answer:
    return _of_content([read_content(body)])


def of_gemini_stream(frames: bytes) -> Answer:
    return _of_content(stream_content(frames))


WHOLE: Mapping[str, Callable[[bytes], Answer]] = {
    "chat": of_chat,
    "responses": of_responses,
    "messages": of_messages,
    "gemini": of_gemini,
    "completions": of_completions,
}
STREAMED: Mapping[str, Callable[[bytes], Answer]] = {
    "chat": of_chat_stream,
    "responses": of_responses_stream,
    "messages": of_messages_stream,
    "gemini": of_gemini_stream,
    "completions": of_completions_stream,
}


def _of_completion(completion: ChatCompletion) -> Answer:
    choice = next((one for one in completion.choices if one.index == 0), None)
    if choice is None:
        return Answer("", "", "", (), "stop", _counts(completion.usage))
    message, calls = choice.message, []
    for call in message.tool_calls or ():
        assert call.type == "function"
        calls.append((call.function.name, canonical(call.function.arguments)))
    reasoning = getattr(message, "reasoning_content", None) or ""
    finish = "tool_calls" if calls and choice.finish_reason == "stop" else choice.finish_reason or "stop"
    usage = _counts(completion.usage)
    return Answer(message.content or "", reasoning, message.refusal or "", tuple(calls), finish, usage)


def _of_texts(completions: list[Completion]) -> Answer:
    """Returns the answer of a whole completion, or of the chunks of a streamed one."""
    choices = [choice for one in completions for choice in one.choices if choice.index == 0]
    text = "".join(choice.text for choice in choices)
    # Chunks before the last one have no reason, which the SDK's type does not know.
    return Answer(text, "", "", (), choices[-1].finish_reason, _counts(completions[-1].usage if completions else None))


def _counts(usage: CompletionUsage | None) -> tuple[int, int, int] | None:
    # xAI counts reasoning in the total alone, which `read_usage` adds to the completion.
    made: Usage | None = read_usage(usage.model_dump()) if usage is not None else None
    return (made.prompt_tokens, made.cache_read_tokens, made.completion_tokens) if made is not None else None


def _of_response(response: Response) -> Answer:
    parts = [part for item in response.output if item.type == "message" for part in item.content]
    reasoning = [part.text for item in response.output if item.type == "reasoning" for part in item.summary]
    calls = tuple((item.name, canonical(item.arguments)) for item in response.output if item.type == "function_call")
    assert {item.type for item in response.output} <= {"message", "reasoning", "function_call"}
    reason = response.incomplete_details.reason if response.incomplete_details is not None else None
    finish = _INCOMPLETE[reason] if reason is not None else "tool_calls" if calls else "stop"
    assert response.status == ("completed" if reason is None else "incomplete")
    text = "".join(part.text for part in parts if part.type == "output_text")
    refusal = "".join(part.refusal for part in parts if part.type == "refusal")
    return Answer(text, "".join(reasoning), refusal, calls, finish, _response_counts(response.usage))


def _response_counts(usage: ResponseUsage | None) -> tuple[int, int, int] | None:
    if usage is None:
        return None
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.output_tokens_details.reasoning_tokens <= usage.output_tokens
    return usage.input_tokens, usage.input_tokens_details.cached_tokens, usage.output_tokens


def _of_message(message: Message) -> Answer:
    texts = [block.text for block in message.content if block.type == "text"]
    thoughts = [block.thinking for block in message.content if block.type == "thinking"]
    calls = tuple((block.name, canonical(block.input)) for block in message.content if block.type == "tool_use")
    usage, details = message.usage, message.stop_details
    cached = usage.cache_read_input_tokens or 0
    prompt = usage.input_tokens + cached + (usage.cache_creation_input_tokens or 0)
    assert message.stop_reason is not None
    refusal = (details.explanation or "") if details is not None else ""
    finish = _STOP_REASONS[message.stop_reason]
    return Answer("".join(texts), "".join(thoughts), refusal, calls, finish, (prompt, cached, usage.output_tokens))


def _of_content(answers: list[GenerateContentResponse]) -> Answer:
    """Returns the answer of a whole response, or of the events of a streamed one."""
    candidates: list[Candidate] = [one for answer in answers for one in answer.candidates or () if not one.index]
    parts: list[Part] = [part for one in candidates if one.content for part in one.content.parts or ()]
    texts = ["".join(part.text or "" for part in parts if bool(part.thought) is hidden) for hidden in (False, True)]
    made = [part.function_call for part in parts if part.function_call is not None]
    calls = tuple((call.name or "", canonical(dict(call.args or {}))) for call in made)
    usage = answers[-1].usage_metadata
    counts = _content_counts(usage) if usage is not None else None
    if not candidates:
        feedback = answers[-1].prompt_feedback
        refusal = (feedback.block_reason_message or "") if feedback is not None else ""
        return Answer("", "", refusal, (), "content_filter", counts)
    reasons = [one.finish_reason for one in candidates if one.finish_reason is not None]
    finish = _FINISH_REASONS.get(reasons[-1].value, "content_filter")
    finish = "tool_calls" if calls and finish == "stop" else finish
    return Answer(texts[0], texts[1], candidates[-1].finish_message or "", calls, finish, counts)


def _content_counts(usage: GenerateContentResponseUsageMetadata) -> tuple[int, int, int]:
    prompt, completion = usage.prompt_token_count or 0, usage.candidates_token_count or 0
    completion += usage.thoughts_token_count or 0
    assert usage.total_token_count == prompt + completion
    return prompt, usage.cached_content_token_count or 0, completion
