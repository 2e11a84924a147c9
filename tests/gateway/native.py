"""Reads from recordings of dialects other than OpenAI's what a client should see, without code of the product.

Botocore decodes the event streams of AWS. Arguments of tool calls are objects here: the product chooses how their JSON
is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from botocore.eventstream import EventStreamBuffer

from tests.fakes.replay import body_of
from tests.gateway.recorded import Choice, RecordedAnswer, Recording, sse_payloads

NATIVE = (
    "anthropic.messages",
    "google.generateContent",
    "google.streamGenerateContent",
    "bedrock.converse",
    "bedrock.converse_stream",
    "cohere.v2_chat",
)
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "TOOL_CALL": "tool_calls",
    "STOP": "stop",
    1: "stop",  # The key 1 is protobuf's number for STOP, which Vertex sends when it is asked for enums as integers.
    2: "length",
}
FILTERED = (
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "LANGUAGE",
)


def native_answer(recording: Recording) -> RecordedAnswer:
    """Returns the answer that a client should see; its `calls` are (name, arguments as JSON with sorted keys)."""
    return READERS[recording["api"]](recording["response"])


def counts(prompt: int, completion: int) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def canonical(arguments: Any) -> str:
    return json.dumps(json.loads(arguments or "{}") if isinstance(arguments, str) else arguments, sort_keys=True)


def _anthropic(response: Mapping[str, Any]) -> RecordedAnswer:
    if response["stream"]:
        return _anthropic_stream(sse_payloads(response["body_text"]))
    body = json.loads(response["body_text"])
    choice = Choice(finish=FINISH[body["stop_reason"]])
    for block in body["content"]:
        if block["type"] == "text":
            choice.text += block["text"]
        elif block["type"] == "tool_use":
            choice.calls.append((block["name"], canonical(block["input"])))
    return RecordedAnswer({0: choice}, _anthropic_usage(body["usage"]))


def _anthropic_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    cached = (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
    return counts(usage["input_tokens"] + cached, usage["output_tokens"])


def _anthropic_stream(events: Iterable[dict[str, Any]]) -> RecordedAnswer:
    choice, answer = Choice(), RecordedAnswer()
    usage: dict[str, Any] = {}
    inputs: dict[int, list[str]] = {}
    for event in events:
        match event["type"]:
            case "message_start":
                usage.update(event["message"]["usage"])
            case "content_block_start" if event["content_block"]["type"] == "tool_use":
                inputs[event["index"]] = [event["content_block"]["name"], ""]
            case "content_block_start" if event["content_block"]["type"] == "text":
                choice.text += event["content_block"]["text"]
            case "content_block_delta":
                delta = event["delta"]
                choice.text += delta.get("text", "")
                if event["index"] in inputs:
                    inputs[event["index"]][1] += delta.get("partial_json", "")
            case "message_delta":
                choice.finish = FINISH[event["delta"]["stop_reason"]]
                usage.update({name: value for name, value in event["usage"].items() if value is not None})
            case "error":
                answer.error = event["error"]["message"]
    choice.calls = [(name, canonical(text)) for name, text in inputs.values()]
    answer.choices = {0: choice}
    answer.usage = _anthropic_usage(usage) if usage else None
    return answer


def _google(response: Mapping[str, Any]) -> RecordedAnswer:
    text = response["body_text"]
    events = sse_payloads(text) if text.lstrip().startswith("data:") else json.loads(text)
    answer = RecordedAnswer()
    for event in events if isinstance(events, list) else [events]:
        for position, candidate in enumerate(event.get("candidates", [])):
            _add_candidate(answer.choices.setdefault(candidate.get("index", position), Choice()), candidate)
        if usage := event.get("usageMetadata"):
            prompt = usage.get("promptTokenCount", 0) + usage.get("toolUsePromptTokenCount", 0)
            answer.usage = counts(prompt, usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0))
    return answer


def _add_candidate(choice: Choice, candidate: Mapping[str, Any]) -> None:
    for part in (candidate.get("content") or {}).get("parts", []):
        if "functionCall" in part:
            choice.calls.append((part["functionCall"]["name"], canonical(part["functionCall"].get("args", {}))))
        elif not part.get("thought"):
            choice.text += part.get("text", "")
    if reason := candidate.get("finishReason"):
        finish = "content_filter" if reason in FILTERED else FINISH[reason]
        choice.finish = "tool_calls" if choice.calls and finish == "stop" else finish


def _bedrock(response: Mapping[str, Any]) -> RecordedAnswer:
    body = json.loads(response["body_text"])
    choice = Choice(finish=FINISH[body["stopReason"]])
    for block in body["output"]["message"]["content"]:
        choice.text += block.get("text", "")
        if "toolUse" in block:
            choice.calls.append((block["toolUse"]["name"], canonical(block["toolUse"]["input"])))
    return RecordedAnswer({0: choice}, _bedrock_usage(body["usage"]))


def _bedrock_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    cached = usage.get("cacheReadInputTokens", 0) + usage.get("cacheWriteInputTokens", 0)
    return counts(usage["inputTokens"] + cached, usage["outputTokens"])


def _bedrock_stream(response: Mapping[str, Any]) -> RecordedAnswer:
    buffer = EventStreamBuffer()
    buffer.add_data(body_of(response))
    choice, answer = Choice(), RecordedAnswer()
    inputs: dict[int, list[str]] = {}
    for frame in buffer:
        headers: Any = frame.headers  # The stubs of botocore type this value as a number.
        event = json.loads(frame.payload)
        match headers.get(":event-type", headers[":message-type"]):
            case "exception":
                answer.error = event["message"]
            case "contentBlockStart" if "toolUse" in event["start"]:
                # A tool that the vendor itself runs (grounding) is no call for the client.
                if event["start"]["toolUse"].get("type") != "server_tool_use":
                    inputs[event["contentBlockIndex"]] = [event["start"]["toolUse"]["name"], ""]
            case "contentBlockDelta":
                choice.text += event["delta"].get("text", "")
                if event["contentBlockIndex"] in inputs:
                    inputs[event["contentBlockIndex"]][1] += event["delta"].get("toolUse", {}).get("input", "")
            case "messageStop":
                choice.finish = FINISH[event["stopReason"]]
            case "metadata":
                answer.usage = _bedrock_usage(event["usage"])
    choice.calls = [(name, canonical(text)) for name, text in inputs.values()]
    answer.choices = {0: choice}
    return answer


def _cohere(response: Mapping[str, Any]) -> RecordedAnswer:
    if response["stream"]:
        return _cohere_stream(sse_payloads(response["body_text"]))
    body = json.loads(response["body_text"])
    message = body["message"]
    choice = Choice(finish=FINISH[body["finish_reason"]])
    choice.text = "".join(part["text"] for part in message.get("content") or [] if part["type"] == "text")
    calls = [call["function"] for call in message.get("tool_calls") or []]
    choice.calls = [(call["name"], canonical(call["arguments"])) for call in calls]
    return RecordedAnswer({0: choice}, _cohere_usage(body["usage"]))


def _cohere_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    return counts(int(usage["tokens"]["input_tokens"]), int(usage["tokens"]["output_tokens"]))


def _cohere_stream(events: Iterable[dict[str, Any]]) -> RecordedAnswer:
    choice, answer = Choice(), RecordedAnswer()
    inputs: dict[int, list[str]] = {}
    for event in events:
        message = event.get("delta", {}).get("message", {})
        match event["type"]:
            case "content-delta":
                choice.text += message["content"].get("text", "")
            case "tool-call-start":
                function = message["tool_calls"]["function"]
                inputs[event["index"]] = [function["name"], function.get("arguments", "")]
            case "tool-call-delta":
                inputs[event["index"]][1] += message["tool_calls"]["function"]["arguments"]
            case "message-end" if event["delta"].get("error"):
                answer.error = event["delta"]["error"]
            case "message-end":
                choice.finish = FINISH[event["delta"]["finish_reason"]]
                answer.usage = _cohere_usage(event["delta"]["usage"])
    choice.calls = [(name, canonical(text)) for name, text in inputs.values()]
    answer.choices = {0: choice}
    return answer


READERS: Mapping[str, Callable[[Mapping[str, Any]], RecordedAnswer]] = {
    "anthropic.messages": _anthropic,
    "google.generateContent": _google,
    "google.streamGenerateContent": _google,
    "bedrock.converse": _bedrock,
    "bedrock.converse_stream": _bedrock_stream,
    "cohere.v2_chat": _cohere,
}
