"""The content of an answer, as a client reads ours and as a vendor's SDK reads the recorded one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from integrations.providers.usage import Usage

Json = Mapping[str, Any]


@dataclass
class Choice:
    """One choice. `calls` are ids, names and decoded arguments. What is None is not compared."""

    text: str = ""
    reasoning: str | None = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    finish: str = "stop"
    signatures: list[str] | None = None
    cited: set[str] | None = None


@dataclass
class Reading:
    """A whole answer. `usage` holds the counts that the vendor reports, under the names of `Usage`."""

    choices: dict[int, Choice]
    usage: Mapping[str, Any] | None = None
    model: str | None = None
    id: str | None = None


def of_completion(body: Json) -> Reading:
    """Returns what a client reads in a completion."""
    choices = {one["index"]: _choice(one.get("message") or {}, one) for one in body["choices"]}
    return Reading(choices, body.get("usage"), body.get("model"), body.get("id"))


def of_chunks(chunks: Iterable[Json], *, is_vendors: bool = False) -> Reading:
    """Returns what a client reads in a stream's chunks, whose pieces it joins by their index. In ours it finds the
    reasoning under one name, in a vendor's under any."""
    messages: dict[int, dict[str, Any]] = {}
    ends: dict[int, dict[str, Any]] = {}
    reading = Reading({})
    for chunk in chunks:
        reading.id, reading.model, reading.usage = chunk.get("id"), chunk.get("model"), chunk.get("usage")
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            reasoning = reasoning_of(delta) if is_vendors else delta.get("reasoning_content") or ""
            _add(messages.setdefault(choice["index"], {}), {**delta, "reasoning_content": reasoning})
            if choice.get("finish_reason"):
                ends[choice["index"]] = choice
    for index, message in messages.items():
        calls = {"tool_calls": list(message.pop("tool_calls", {}).values())}
        reading.choices[index] = _choice(message | calls, ends.get(index, {}))
    return reading


def assert_same(ours: Reading, theirs: Reading, *, has_ids: bool = True) -> None:
    """Asserts that both say the same, as far as the vendor says it; `has_ids` means that its calls have ids."""
    assert ours.choices.keys() == theirs.choices.keys()
    for index, choice in theirs.choices.items():
        for name, value in vars(choice).items():
            own = getattr(ours.choices[index], name)
            if name == "calls" and not has_ids:
                assert len({call[0] for call in own}) == len(own)
                own, value = [call[1:] for call in own], [call[1:] for call in value]
            assert value is None or own == value, name
    assert theirs.model in (None, ours.model)
    assert theirs.id in (None, ours.id)


def assert_counted(usage: Usage | None, theirs: Reading) -> None:
    if theirs.usage is None:
        assert usage is None
    for name, count in (theirs.usage or {}).items():
        assert getattr(usage, name) == count, name


def reasoning_of(message: Json) -> str:
    """Returns the reasoning of a message or delta, in whichever field a vendor has put it."""
    text = message.get("reasoning_content") or message.get("reasoning")
    return text or "".join(detail.get("text") or "" for detail in message.get("reasoning_details") or ())


def arguments_of(text: Any) -> Any:
    return json.loads(text or "{}") if isinstance(text, str) else text


def _choice(message: Json, end: Json) -> Choice:
    called = [(call["id"], call["function"]) for call in message.get("tool_calls") or ()]
    details = message.get("reasoning_details") or ()
    signatures = [detail.get("signature") or detail.get("data") for detail in details]
    return Choice(
        text=message.get("content") or "",
        reasoning=reasoning_of(message),
        calls=[(call_id, function["name"], arguments_of(function["arguments"])) for call_id, function in called],
        finish=end.get("finish_reason") or "stop",
        signatures=[signature for signature in signatures if signature],
        cited={note["url_citation"]["url"] for note in message.get("annotations") or ()},
    )


def _add(message: dict[str, Any], delta: Json) -> None:
    message["content"] = (message.get("content") or "") + (delta.get("content") or "")
    message["reasoning_content"] = (message.get("reasoning_content") or "") + delta["reasoning_content"]
    for name in ("reasoning_details", "annotations"):
        message[name] = [*message.get(name, ()), *(delta.get(name) or ())]
    for call in delta.get("tool_calls") or ():
        known = message.setdefault("tool_calls", {}).setdefault(
            call.get("index") or 0, {"id": "", "function": {"name": "", "arguments": ""}}
        )
        known["id"] = call.get("id") or known["id"]
        for name in known["function"]:
            known["function"][name] += (call.get("function") or {}).get(name) or ""
