"""A guarded stream gives what the guarded whole answer gives, however its events are cut and mixed."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming._deltas import accumulate_delta

from analytics.shipper.streamed import assembled
from gateway.guardrails.output.answer import OutputChecks
from gateway.guardrails.output.stream import StreamGuard
from gateway.project_settings.guardrails import GuardrailSettings, TrustMode
from gateway.protocol import sse
from integrations.providers.base import StreamEvent
from tests.night import examples

SETTINGS = GuardrailSettings(
    trust_mode=TrustMode.ENFORCE,
    mask_output_pii=True,
    block_exfiltration_urls=True,
    blocked_output_topics=("a phrase that never comes",),
)
PARTS = [
    "ada@example.org",
    "4242 4242 4242 4242",
    "+49 30 901820 22",
    "10.1.2.3",
    "a",
    "phrase",
    "7",
    "déjà 😀",
    "x\\n",
    '"',
]
texts = st.lists(st.sampled_from(PARTS), max_size=12).map(" ".join)
messages = st.lists(st.tuples(texts, texts, texts, texts), min_size=1, max_size=3)


def checks() -> OutputChecks:
    return OutputChecks(SETTINGS, list)


def event(index: int, delta: dict[str, Any], reason: str | None = None) -> StreamEvent:
    choice = {"index": index, "delta": delta, "finish_reason": reason}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    if reason is not None:
        chunk["usage"] = {"total_tokens": 3}
    return StreamEvent(json.dumps(chunk).encode(), has_output=bool(delta))


def events_of(index: int, whole: dict[str, Any], cut: random.Random) -> list[StreamEvent]:
    """Returns a choice's answer as events: reasoning and content mixed, then its calls mixed."""
    texts = [[{name: piece} for piece in pieces(whole[name], cut)] for name in ("reasoning_content", "content")]
    calls = []
    for call in whole["tool_calls"]:
        first = {**call, "function": {"name": "f", "arguments": ""}}
        parts = pieces(call["function"]["arguments"], cut)
        rest = [{"index": call["index"], "function": {"arguments": part}} for part in parts]
        calls.append([{"tool_calls": [piece]} for piece in (first, *rest)])
    deltas = [{"role": "assistant", "content": ""}, *mixed(texts, cut), *mixed(calls, cut)]
    return [event(index, delta) for delta in deltas]


def pieces(text: str, cut: random.Random) -> list[str]:
    places = sorted({0, len(text), *(cut.randrange(len(text) + 1) for _ in range(cut.randrange(len(text) + 1)))})
    return [text[start:end] for start, end in pairwise(places)]


def mixed(rows: list[list[Any]], cut: random.Random) -> list[Any]:
    """Mixes the rows, keeping the order within each."""
    left, out = [list(row) for row in rows if row], []
    while left:
        row = cut.choice(left)
        out.append(row.pop(0))
        left = [row for row in left if row]
    return out


def message(reasoning: str, content: str, first: str, second: str) -> dict[str, Any]:
    calls = []
    for number, value in enumerate(({"a": first, "card": 4242424242424242}, [second])):
        function = {"name": "f", "arguments": json.dumps(value)}
        calls.append({"index": number, "id": f"t{number}", "type": "function", "function": function})
    return {"role": "assistant", "reasoning_content": reasoning, "content": content, "tool_calls": calls}


@settings(max_examples=examples(37, 150), deadline=None)
@given(messages, st.randoms(use_true_random=False))
def test_a_stream_says_what_the_whole_says(given_texts: list[tuple[str, str, str, str]], cut: random.Random) -> None:
    wholes = [message(*each) for each in given_texts]
    events = mixed([events_of(index, whole, cut) for index, whole in enumerate(wholes)], cut)
    ends = [event(index, {}, "stop") for index in range(len(wholes))]
    guard = StreamGuard(checks())
    out = [sent for one in events for sent in guard.feed([one])] + guard.close(ends)
    assert out[-1] is ends[-1]
    got = json.loads(assembled(sse.frame_all(out)))["choices"]
    for choice, whole in zip(got, wholes, strict=True):
        checks().guard_message(whole)
        for name in ("reasoning_content", "content"):
            assert (choice["message"].get(name) or "") == whole[name]
        calls = sorted(choice["message"]["tool_calls"], key=lambda call: int(call["index"]))
        arguments = [call["function"]["arguments"] for call in calls]
        assert arguments == [call["function"]["arguments"] for call in whole["tool_calls"]]
        assert json.loads(arguments[0])["card"] == "[CARD]"


def test_nothing_is_lost_of_a_stream_without_an_end() -> None:
    guard = StreamGuard(checks())
    sent = guard.feed([event(0, {"content": "call 555"})]) + guard.close([])
    assert json.loads(assembled(sse.frame_all(sent)))["choices"][0]["message"]["content"] == "call 555"


def test_a_signature_goes_with_the_text_it_signed() -> None:
    for text, has_signature in (("to ada@example.org", False), ("to nobody", True)):
        guard = StreamGuard(checks())
        pieces_of_it = [{"index": 0, "type": "t", "text": piece} for piece in text]
        deltas = [{"reasoning_details": [piece]} for piece in [*pieces_of_it, {"index": 0, "signature": "s"}]]
        sent = guard.feed([event(0, delta) for delta in deltas]) + guard.close([event(0, {}, "stop")])
        (detail,) = json.loads(assembled(sse.frame_all(sent)))["choices"][0]["message"]["reasoning_details"]
        assert detail["text"] == text.replace("ada@example.org", "[EMAIL]")
        assert ("signature" in detail) is has_signature


def test_stream__fields_of_the_vendor__masked_at_once_since_they_are_whole() -> None:
    """Text held back for a later chunk would replace the field, or be a list entry that the SDK's helper refuses."""
    blocks = [
        {"index": 0, "citationsContent": {"content": [{"text": "Ask ada@example.org"}], "citations": [{"title": "T"}]}},
        {"index": 1, "toolResult": {"toolUseId": "s", "content": [{"text": "10.1.2.3"}, {"json": {"text": "a"}}]}},
    ]
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": ""},
        {"content": "Ask ada@example.org"},
        {"provider_specific_fields": {"content": blocks[:1]}},
        {"provider_specific_fields": {"content": blocks[1:]}},
        {"provider_specific_fields": {"trace": {"guardrail": {"modelOutput": ["ada@example.org said"]}}}},
    ]
    guard = StreamGuard(checks())
    events = guard.feed([event(0, delta) for delta in deltas]) + guard.close([event(0, {}, "stop")])
    message: dict[object, object] = {}
    for item in events:
        message = accumulate_delta(message, json.loads(item.data)["choices"][0]["delta"])
    serialized = json.dumps(message)
    assert "ada@" not in serialized
    assert "10.1.2.3" not in serialized
    fields: Any = message["provider_specific_fields"]
    assert fields["content"][0]["citationsContent"]["content"][0]["text"] == message["content"]
    assert fields["trace"]["guardrail"]["modelOutput"][0].endswith(" said")


def test_fields_of_the_vendor_come_whole_and_are_masked_whole() -> None:
    """The fields have the names of texts that come in pieces, and lists without indexes: no text leaks into another."""
    supports = [{"segment": {"text": f"{name}: ada@example.org and 4242"}} for name in "ab"]
    parts = [{"index": 0, "executableCode": {"code": "mail('ada@example.org')"}, "thoughtSignature": "c2ln"}]
    fields = {
        "groundingMetadata": {"groundingSupports": supports},
        "content": [{"type": "text", "text": "so 10.1.2.3"}],
    }
    guard = StreamGuard(checks())
    deltas: list[dict[str, Any]] = [
        {"content": "Hi"},
        {"provider_specific_fields": {"parts": parts}},
        {"provider_specific_fields": fields},
    ]
    out = guard.feed([event(0, delta) for delta in deltas]) + guard.close([event(0, {}, "stop")])
    deltas_out = [json.loads(sent.data)["choices"][0]["delta"].get("provider_specific_fields") for sent in out]
    first, second = [one for one in deltas_out if one is not None]
    assert first == {"parts": [{"index": 0, "executableCode": {"code": "mail('[EMAIL]')"}}]}
    assert second == {
        "groundingMetadata": {
            "groundingSupports": [{"segment": {"text": f"{name}: [EMAIL] and 4242"}} for name in "ab"]
        },
        "content": [{"type": "text", "text": "so [IP]"}],
    }
    vendor_fields = {"parts": [{"executableCode": {"code": "1"}, "thoughtSignature": "4242424242424242"}]}
    (same,) = StreamGuard(checks()).feed([event(0, {"provider_specific_fields": vendor_fields})])
    assert json.loads(same.data)["choices"][0]["delta"] == {"provider_specific_fields": vendor_fields}
