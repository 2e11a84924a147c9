"""What each vendor's official SDK reads in a recorded answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import httpx
import httpx2
from anthropic import Anthropic
from anthropic.types import Message
from botocore.eventstream import EventStreamBuffer
from google.genai import Client, types
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from integrations.providers.common.usage import read_usage
from tests.integrations.bedrock_exchanges import parsed_by_botocore
from tests.integrations.cohere_sdk import read_answer as cohere_answer
from tests.integrations.cohere_sdk import read_stream as cohere_events
from tests.integrations.mistral_sdk import read_answer as mistral_answer
from tests.integrations.mistral_sdk import read_stream as mistral_chunks
from tests.integrations.recordings.reading import Choice, Reading, arguments_of, of_chunks, of_completion
from tests.recordings import Recording

ENDS: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "TOOL_CALL": "tool_calls",
    "STOP": "stop",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"), "content_filter"
    ),
}
"""The vendors' reasons for the end of an answer, in OpenAI's words."""


def payloads_of(recording: Recording) -> Iterator[dict[str, Any]]:
    """Yields the events of a recorded stream of SSE, read by a simple parser."""
    for line in recording.body.decode().replace("\r\n", "\n").split("\n"):
        payload = line.removeprefix("data:").strip()
        if line.startswith("data:") and payload and payload != "[DONE]":
            yield json.loads(payload)


def anthropic_client(recording: Recording) -> Anthropic:
    """Returns the official client connected to the recorded answer."""
    kind = "text/event-stream" if recording.stream and recording.status == 200 else "application/json"

    def answer(_: httpx2.Request) -> httpx2.Response:
        headers = {**recording.headers, "content-type": kind}
        return httpx2.Response(recording.status, headers=headers, content=recording.body)

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    return Anthropic(api_key="sk-ant-test", base_url="http://upstream.test", http_client=client, max_retries=0)


def anthropic_message(recording: Recording) -> Message:
    ask: Any = {"model": "claude-haiku-5-5", "max_tokens": 1024, "messages": [{"role": "user", "content": "x"}]}
    with anthropic_client(recording) as client:
        if not recording.stream:
            message: Message = client.messages.create(**ask)
            return message
        with client.messages.stream(**ask) as stream:
            return stream.get_final_message()


def read_anthropic(recording: Recording) -> Reading:
    message = anthropic_message(recording)
    choice = Choice(finish=ENDS[message.stop_reason or "end_turn"], signatures=[], cited=set(), reasoning="")
    assert choice.signatures is not None
    assert choice.cited is not None
    for block in message.content:
        match block.type:
            case "thinking":
                choice.reasoning = f"{choice.reasoning}{block.thinking}"
                choice.signatures.append(block.signature)
            case "redacted_thinking":
                choice.signatures.append(block.data)
            case "tool_use":
                choice.calls.append((block.id, block.name, block.input))
            case "text":
                choice.text += block.text
                notes = block.citations or []
                choice.cited |= {note.url for note in notes if note.type == "web_search_result_location"}
    counts = message.usage
    read, written = counts.cache_read_input_tokens or 0, counts.cache_creation_input_tokens or 0
    usage = {
        "prompt_tokens": counts.input_tokens + read + written,
        "completion_tokens": counts.output_tokens,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
        "reasoning_tokens": counts.output_tokens_details.thinking_tokens if counts.output_tokens_details else 0,
        "searches": (counts.server_tool_use.web_search_requests or 0) if counts.server_tool_use else 0,
    }
    return Reading({0: choice}, usage, message.model, message.id)


def read_google(recording: Recording) -> Reading:
    responses = list(_google_responses(recording))
    choice = Choice(signatures=[], reasoning="")
    assert choice.signatures is not None
    for candidate in (candidate for response in responses for candidate in response.candidates or ()):
        for part in (candidate.content and candidate.content.parts) or ():
            if part.thought:
                choice.reasoning = f"{choice.reasoning}{part.text or ''}"
            else:
                choice.text += part.text or ""
            if part.function_call:
                choice.calls.append(("", part.function_call.name or "", part.function_call.args or {}))
            if part.thought_signature:
                choice.signatures.append(base64.b64encode(part.thought_signature).decode())
        if candidate.finish_reason:
            choice.finish = ENDS[candidate.finish_reason.value]
    if choice.calls and choice.finish == "stop":
        choice.finish = "tool_calls"
    return Reading({0: choice}, _google_usage(responses), responses[-1].model_version, responses[-1].response_id)


def _google_responses(recording: Recording) -> Iterable[types.GenerateContentResponse]:
    """Returns the responses as the SDK reads them: as server-sent events with enumerations by name, its only form."""
    body = recording.body
    if recording.stream and body.lstrip().startswith(b"["):
        text = (
            body.decode()
            .replace('"finishReason": 1', '"finishReason": "STOP"')
            .replace('"modality": 1', '"modality": "TEXT"')
        )
        items = json.loads(text.replace('"trafficType": 1', '"trafficType": "ON_DEMAND"'))
        body = "".join(f"data: {json.dumps(item)}\r\n\r\n" for item in items).encode()
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, content=body, headers={"content-type": "application/json"})
    )
    options = types.HttpOptions(base_url="http://upstream.test", httpx_client=httpx.Client(transport=transport))
    with Client(api_key="k", http_options=options) as sdk:
        if recording.stream:
            return list(sdk.models.generate_content_stream(model="m", contents="x"))
        return [sdk.models.generate_content(model="m", contents="x")]


def _google_usage(responses: list[types.GenerateContentResponse]) -> dict[str, int]:
    counted = [
        one.usage_metadata
        for one in responses
        if one.usage_metadata and one.usage_metadata.prompt_token_count is not None
    ]
    usage = counted[-1]
    thoughts = usage.thoughts_token_count or 0
    grounded = [
        candidate.grounding_metadata.web_search_queries or ()
        for response in responses
        for candidate in response.candidates or ()
        if candidate.grounding_metadata
    ]
    return {
        "prompt_tokens": (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
        "completion_tokens": (usage.candidates_token_count or 0) + thoughts,
        "cache_read_tokens": usage.cached_content_token_count or 0,
        "reasoning_tokens": thoughts,
        "audio_prompt_tokens": _tokens_of(usage.prompt_tokens_details, "AUDIO"),
        "image_prompt_tokens": _tokens_of(usage.prompt_tokens_details, "IMAGE"),
        "image_completion_tokens": _tokens_of(usage.candidates_tokens_details, "IMAGE"),
        # From Gemini 3 each query is charged.
        "searches": len(grounded[-1]) if grounded else 0,
    }


def _tokens_of(details: Iterable[types.ModalityTokenCount] | None, modality: str) -> int:
    return sum(detail.token_count or 0 for detail in details or () if detail.modality == modality)


def read_bedrock(recording: Recording) -> Reading:
    if recording.stream:
        return _read_frames(bedrock_frames(recording.body))
    answer = parsed_by_botocore(recording.status, recording.headers, recording.body)
    choice = Choice(finish=ENDS[answer["stopReason"]], signatures=[], reasoning="")
    for block in answer["output"]["message"]["content"]:
        cited = block.get("citationsContent", {}).get("content", ())
        choice.text += block.get("text", "") + "".join(part.get("text", "") for part in cited)
        _add_thought(choice, block.get("reasoningContent", {}).get("reasoningText", {}))
        if (use := block.get("toolUse")) and use.get("type") != "server_tool_use":
            choice.calls.append((use["toolUseId"], use["name"], use["input"]))
    return Reading({0: choice}, _bedrock_usage(answer["usage"]))


def bedrock_frames(body: bytes) -> list[tuple[str, dict[str, Any]]]:
    buffer = EventStreamBuffer()
    buffer.add_data(body)
    frames: list[Any] = list(buffer)
    return [(frame.headers[":event-type"], json.loads(frame.payload)) for frame in frames]


def _read_frames(frames: Iterable[tuple[str, dict[str, Any]]]) -> Reading:
    choice = Choice(reasoning="", cited=set())
    assert choice.cited is not None
    usage: dict[str, int] = {}
    calls: dict[int, list[str]] = {}
    for kind, frame in frames:
        match kind:
            case "contentBlockStart" if use := frame["start"].get("toolUse"):
                if use.get("type") != "server_tool_use":
                    calls[frame["contentBlockIndex"]] = [use["toolUseId"], use["name"], ""]
            case "contentBlockDelta":
                delta = frame["delta"]
                choice.text += delta.get("text", "")
                _add_thought(choice, delta.get("reasoningContent", {}))
                if frame["contentBlockIndex"] in calls:
                    calls[frame["contentBlockIndex"]][2] += delta["toolUse"]["input"]
                if "citation" in delta:
                    choice.cited.add(delta["citation"]["location"]["web"]["url"])
            case "messageStop":
                choice.finish = ENDS[frame["stopReason"]]
            case "metadata":
                usage = _bedrock_usage(frame["usage"])
    choice.calls = [(call_id, name, arguments_of(text)) for call_id, name, text in calls.values()]
    return Reading({0: choice}, usage)


def _add_thought(choice: Choice, thought: Mapping[str, Any]) -> None:
    choice.reasoning = f"{choice.reasoning}{thought.get('text', '')}"
    if choice.signatures is not None and "signature" in thought:
        choice.signatures.append(thought["signature"])


def _bedrock_usage(usage: Mapping[str, int]) -> dict[str, int]:
    read, written = usage.get("cacheReadInputTokens", 0), usage.get("cacheWriteInputTokens", 0)
    counts = {"cache_read_tokens": read, "cache_write_tokens": written, "total_tokens": usage["totalTokens"]}
    return {
        **counts,
        "prompt_tokens": usage["inputTokens"] + read + written,
        "completion_tokens": usage["outputTokens"],
    }


def read_cohere(recording: Recording) -> Reading:
    if recording.stream:
        return _read_cohere_events(cohere_events(recording.body))
    answer = cohere_answer(recording.body)
    parts = answer.message.content or []
    thoughts = [part.thinking for part in parts if part.type == "thinking"]
    calls = [(call.id, call.function) for call in answer.message.tool_calls or []]
    choice = Choice(
        text="".join(part.text for part in parts if part.type == "text"),
        reasoning="\n".join([*thoughts, *filter(None, [answer.message.tool_plan])]),
        calls=[(call_id, call.name or "", arguments_of(call.arguments)) for call_id, call in calls if call],
        finish=ENDS[answer.finish_reason],
    )
    return Reading({0: choice}, _cohere_usage(answer.usage))


def _read_cohere_events(events: Iterable[Any]) -> Reading:
    choice, usage = Choice(reasoning=""), None
    calls: dict[int, list[str]] = {}
    for event in events:
        match event.type:
            case "content-delta":
                choice.text += event.delta.message.content.text or ""
                choice.reasoning = f"{choice.reasoning}{event.delta.message.content.thinking or ''}"
            case "tool-plan-delta":
                choice.reasoning = f"{choice.reasoning}{event.delta.message.tool_plan}"
            case "tool-call-start":
                call = event.delta.message.tool_calls
                calls[event.index] = [call.id, call.function.name, call.function.arguments]
            case "tool-call-delta":
                calls[event.index][2] += event.delta.message.tool_calls.function.arguments
            case "message-end":
                choice.finish, usage = ENDS[event.delta.finish_reason], _cohere_usage(event.delta.usage)
    # Cohere sends no arguments for a call without any.
    choice.calls = [(call_id, name, arguments_of(text)) for call_id, name, text in calls.values()]
    return Reading({0: choice}, usage)


def _cohere_usage(usage: Any) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.tokens.input_tokens,
        "completion_tokens": usage.tokens.output_tokens,
        "billed_prompt_tokens": usage.billed_units.input_tokens,
        "billed_completion_tokens": usage.billed_units.output_tokens,
        "cache_read_tokens": usage.cached_tokens or 0,
    }


def read_openai(recording: Recording) -> Reading:
    if recording.stream:
        payloads = [payload for payload in payloads_of(recording) if not payload.get("error")]
        reading = of_chunks(
            (ChatCompletionChunk.construct(**payload).to_dict() for payload in payloads), is_vendors=True
        )
        counted = [found for one in payloads if (found := one.get("usage") or (one.get("x_groq") or {}).get("usage"))]
        reading.usage = counted[-1] if counted else None
    else:
        reading = of_completion(ChatCompletion.construct(**json.loads(recording.body)).to_dict())
    if reading.usage is not None:
        usage = read_usage(reading.usage)
        reading.usage = {name: getattr(usage, name) for name in usage.__struct_fields__} if usage else None
    reading.id = None  # Chunks may come without.
    for choice in reading.choices.values():
        choice.signatures, choice.cited = None, None
    return reading


def read_mistral(recording: Recording) -> Reading:
    """Returns the SDK's reading with contents and thoughts, which are lists there, as texts."""
    if recording.stream:
        chunks = [chunk.model_dump(mode="json") for chunk in mistral_chunks(recording.body)]
    else:
        chunks = [mistral_answer(recording.body).model_dump(mode="json")]
    for choice in (choice for chunk in chunks for choice in chunk["choices"]):
        piece = choice["delta" if recording.stream else "message"]
        content = piece.get("content")
        piece["content"] = _mistral_text(content)
        piece["reasoning_content"] = _mistral_thinking(content)
    reading = of_chunks(chunks) if recording.stream else of_completion(chunks[0])
    usage = reading.usage or {}
    reading.usage = {name: usage[name] for name in ("prompt_tokens", "completion_tokens")}
    for one in reading.choices.values():
        one.signatures, one.cited = None, None
    return reading


def _mistral_text(content: Any) -> str:
    return (
        "".join(part["text"] for part in content if part["type"] == "text")
        if isinstance(content, list)
        else content or ""
    )


def _mistral_thinking(content: Any) -> str:
    parts = [part for part in content if part["type"] == "thinking"] if isinstance(content, list) else []
    return "".join(piece["text"] for part in parts for piece in part["thinking"] if piece["type"] == "text")


READERS: Mapping[str, Callable[[Recording], Reading]] = {
    "anthropic.messages": read_anthropic,
    "google.generateContent": read_google,
    "google.streamGenerateContent": read_google,
    "bedrock.converse": read_bedrock,
    "bedrock.converse_stream": read_bedrock,
    "cohere.v2_chat": read_cohere,
    "openai.chat_completions": read_openai,
}


def read(recording: Recording) -> Reading:
    """Returns what the SDK of the vendor reads."""
    return read_mistral(recording) if recording.provider == "mistral" else READERS[recording.api](recording)
