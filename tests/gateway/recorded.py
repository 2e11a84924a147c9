"""Reads from a recording what a client should see, without code of the product."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.recordings import OPENAI_DIALECT, SHARED_DIR

Recording = dict[str, Any]
Call = tuple[str, str]


OWN = Path(__file__).resolve().parent.parent / "fixtures" / "exchanges"


def exchanges(*apis: str) -> list[Recording]:
    """Returns every exchange of these dialects, OpenAI's when none is named, as its file has it: the made-up ones
    first, then those of SHARED_DIR."""
    shared = SHARED_DIR / "recordings"
    files = [*sorted(OWN.rglob("*.json")), *sorted(shared.glob("*/*.json"))]
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return [exchange for exchange in found if exchange["api"] in (apis or (OPENAI_DIALECT,))]


@dataclass
class Choice:
    """One choice of an answer: `text` is all its content, `calls` are (name, arguments) in order."""

    text: str = ""
    calls: list[Call] = field(default_factory=list)
    finish: str = ""


@dataclass
class RecordedAnswer:
    choices: dict[int, Choice] = field(default_factory=dict)
    usage: dict[str, Any] | None = None
    error: str = ""

    def finished(self) -> RecordedAnswer:
        """Returns the finish reason of an answer: never empty, and `tool_calls` for a model that called tools, whatever
        it recorded."""
        for choice in self.choices.values():
            if choice.calls and choice.finish == "stop":
                choice.finish = "tool_calls"
            choice.finish = choice.finish or "stop"
        return self


def sse_payloads(text: str) -> list[Any]:
    """Returns the JSON of every `data:` line but `[DONE]`."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    payloads = [line[5:].strip() for line in lines if line.startswith("data:")]
    return [json.loads(payload) for payload in payloads if payload != "[DONE]"]


def text_of(content: Any) -> str:
    """Returns the text of a content, which is a string, null, or (mistral) a list of parts."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if part.get("type") == "text")
    return content or ""


def expected(recording: Recording) -> RecordedAnswer:
    response = recording["response"]
    return (_streamed if response["stream"] else _whole)(response["body_text"]).finished()


def _whole(text: str) -> RecordedAnswer:
    body = json.loads(text)
    answer = RecordedAnswer(usage=body.get("usage"))
    for choice in body["choices"]:
        # An answer that a filter removed has no message.
        message = choice.get("message") or {}
        calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or []]
        answer.choices[choice["index"]] = Choice(text_of(message.get("content")), calls, choice["finish_reason"])
    return answer


def _streamed(text: str) -> RecordedAnswer:
    answer = RecordedAnswer()
    calls: dict[tuple[int, int], list[str]] = {}
    for payload in sse_payloads(text):
        if payload.get("error"):
            answer.error = payload["error"]["message"]
        answer.usage = payload.get("usage") or (payload.get("x_groq") or {}).get("usage") or answer.usage
        for choice in payload.get("choices") or []:
            _add(answer.choices.setdefault(choice["index"], Choice()), choice, calls)
    for (index, _), (name, arguments) in sorted(calls.items()):
        answer.choices[index].calls.append((name, arguments))
    return answer


def _add(known: Choice, choice: dict[str, Any], calls: dict[tuple[int, int], list[str]]) -> None:
    delta = choice.get("delta") or {}
    known.text += text_of(delta.get("content"))
    known.finish = choice.get("finish_reason") or known.finish
    for call in delta.get("tool_calls") or []:
        entry = calls.setdefault((choice["index"], call.get("index") or 0), ["", ""])
        entry[0] += call["function"].get("name") or ""
        entry[1] += call["function"].get("arguments") or ""


def upstream_message(recording: Recording) -> str:
    """Returns the provider's own message for a failure, from the shapes that providers use; a web page has none."""
    text = recording["response"]["body_text"]
    if recording["response"]["content_type"].startswith("text/html"):
        return ""
    try:
        body = json.loads(text)
    except ValueError:
        return str(text)
    error = body.get("error", body)
    if isinstance(error, str):
        return error
    message = error.get("message") or error.get("detail")
    return message if isinstance(message, str) else ""
