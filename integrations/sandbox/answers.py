from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from integrations.sandbox import tokens
from integrations.sandbox.behaviours import Behaviour
from integrations.sandbox.schemas import sample

_MAX_PARALLEL_CALLS = 4
_WORDS = ["the", "gateway", "forwards", "what", "it", "was", "given", "and", "keeps", "an", "account", "of", "it"]


class RejectedError(Exception):
    """The request is at fault, and OpenAI would answer 400. `param` names the field."""

    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


@dataclass(frozen=True, slots=True)
class Choice:
    text: str
    tool_calls: list[dict[str, Any]]
    finish_reason: str
    reasoning: str = ""

    def tokens(self) -> int:
        calls = sum(tokens.count(json.dumps(call)) for call in self.tool_calls)
        return tokens.count(self.text) + tokens.count(self.reasoning) + calls


def choices_for(request: Mapping[str, Any], behaviour: Behaviour) -> list[Choice]:
    messages = _messages(request)
    reasoning = "The user wrote something, so an answer is due." if behaviour.reasoning else ""
    if behaviour.empty:
        return [Choice("", [], "stop", reasoning)] * _count(request)
    called = _tools_to_call(request, messages)
    if called:
        return [
            Choice("", [_tool_call(tool, messages, number, index) for index, tool in enumerate(called)], "tool_calls")
            for number in range(_count(request))
        ]
    answer = _structured(request, messages) or _answer_text(messages, behaviour)
    return [_cut(answer, request, number, reasoning) for number in range(_count(request))]


def _messages(request: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(item, dict) for item in messages):
        raise RejectedError("messages has to be an array of message objects that is not empty.", "messages")
    return messages


def _count(request: Mapping[str, Any]) -> int:
    number = request.get("n") or 1
    if not isinstance(number, int) or not 1 <= number <= 128:
        raise RejectedError("n has to be between 1 and 128.", "n")
    return number


def text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(part.get("text") or f"[{part.get('type', 'part')}]" for part in parts if isinstance(part, dict))


def _answer_text(messages: Sequence[Mapping[str, Any]], behaviour: Behaviour) -> str:
    if behaviour.mirror:
        return json.dumps(messages, ensure_ascii=False)
    if behaviour.answer_words:
        return " ".join(_WORDS * (behaviour.answer_words // len(_WORDS) + 1))
    return _echo(messages)


def _echo(messages: Sequence[Mapping[str, Any]]) -> str:
    if messages[-1].get("role") == "tool":
        results = [text_of(message) for message in _trailing_results(messages)]
        return "The tools answered: " + "; ".join(results)
    text = next((text_of(message) for message in reversed(messages) if message.get("role") == "user"), "")
    return text or "You said nothing."


def _trailing_results(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    results: list[Mapping[str, Any]] = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        results.insert(0, message)
    return results


def _structured(request: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> str:
    response_format = request.get("response_format") or {}
    if response_format.get("type") == "json_object":
        return json.dumps({"answer": _echo(messages)}, ensure_ascii=False)
    if response_format.get("type") != "json_schema":
        return ""
    try:
        return json.dumps(sample((response_format.get("json_schema") or {}).get("schema") or {"type": "object"}))
    except ValueError as error:
        raise RejectedError(f"Invalid schema for response_format: {error}.", "response_format") from None


def _cut(text: str, request: Mapping[str, Any], number: int, reasoning: str) -> Choice:
    if number and not request.get("response_format"):
        text = f"{text} (choice {number + 1})"
    stops = request.get("stop") or []
    for stop in [stops] if isinstance(stops, str) else stops:
        text = text.split(stop, 1)[0] if stop else text
    limit = request.get("max_completion_tokens") or request.get("max_tokens")
    parts = tokens.pieces(text)
    if isinstance(limit, int) and len(parts) > limit:
        return Choice("".join(parts[:limit]), [], "length", reasoning)
    return Choice(text, [], "stop", reasoning)


def _tools_to_call(
    request: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
) -> list[tuple[str, Mapping[str, Any]]]:
    offered = [tool for tool in request.get("tools") or [] if isinstance(tool, dict)]
    choice = request.get("tool_choice") or "auto"
    if not offered or choice == "none":
        return []
    named = _names_chosen(choice)
    tools = [(kind, tool[kind]) for tool in offered if isinstance(tool.get(kind := tool.get("type", "function")), dict)]
    if named is not None:
        tools = [(kind, tool) for kind, tool in tools if tool.get("name") in named]
        if not tools:
            raise RejectedError("tool_choice names a function that tools does not define.", "tool_choice")
    if messages[-1].get("role") == "tool" and choice != "required" and not _is_single(choice):
        return []
    touched = [] if _is_single(choice) else [pair for pair in tools if _touches(pair[1], messages)]
    limit = 1 if request.get("parallel_tool_calls") is False else _MAX_PARALLEL_CALLS
    return (touched or tools[:1])[:limit]


def _is_single(choice: Any) -> bool:
    return isinstance(choice, dict) and choice.get("type") in ("function", "custom")


def _names_chosen(choice: Any) -> set[str] | None:
    if not isinstance(choice, dict):
        return None
    if choice.get("type") == "allowed_tools":
        listed = (choice.get("allowed_tools") or {}).get("tools") or []
    else:
        listed = [choice]
    return {(item.get(item.get("type", "function")) or {}).get("name", "") for item in listed}


def _touches(tool: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> bool:
    text = next((text_of(message).lower() for message in reversed(messages) if message.get("role") == "user"), "")
    words = [word for word in re.split(r"[^a-z0-9]+", str(tool.get("name", "")).lower()) if len(word) > 3]
    return bool(words) and all(word in text for word in words)


def _tool_call(
    pair: tuple[str, Mapping[str, Any]], messages: Sequence[Mapping[str, Any]], number: int, index: int
) -> dict[str, Any]:
    kind, tool = pair
    name = str(tool.get("name", ""))
    seed = json.dumps([name, number, index, len(messages), text_of(messages[-1])])
    call_id = "call_" + hashlib.sha256(seed.encode()).hexdigest()[:24]
    if kind == "custom":
        return {"id": call_id, "type": "custom", "custom": {"name": name, "input": text_of(messages[-1])}}
    try:
        arguments = sample(tool.get("parameters") or {"type": "object"}, optional=bool(tool.get("strict")))
    except ValueError as error:
        raise RejectedError(f"Invalid schema for function '{name}': {error}.", "tools") from None
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
