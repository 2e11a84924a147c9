"""Tests answers with every documented block and stop reason, whole and streamed: the client gets the same, with all
texts. https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html,
…/API_runtime_ConverseStream.html"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.providers.bedrock import ADAPTER
from tests.integrations.adapters.assembled import as_the_sdk_does, assembled
from tests.integrations.adapters.subject import pieces
from tests.integrations.bedrock_exchanges import CLAUDE, NOVA, bedrock_request, event
from tests.integrations.exchanges import decoded, run
from tests.night import examples

Json = dict[str, Any]
SOURCE = {"bytes": "cG5n"}
CITATIONS: list[Json] = [
    {"title": "T", "sourceContent": [{"text": "x"}], "location": {"web": {"url": "https://a.org", "domain": "a.org"}}},
    {"location": {"documentChar": {"documentIndex": 0, "start": 1, "end": 2}}},
    {"location": {"documentPage": {"documentIndex": 0, "start": 1, "end": 2}}},
    {"location": {"searchResultLocation": {"searchResultIndex": 0, "start": 1, "end": 2}}},
]
BLOCKS: list[Json] = [
    {"text": "Hallo 👋"},
    {"text": ""},
    {"reasoningContent": {"reasoningText": {"text": "hm 🤔", "signature": "c2ln"}}},
    {"reasoningContent": {"reasoningText": {"text": "unsigned"}}},
    {"reasoningContent": {"reasoningText": {"text": "", "signature": "c2ln"}}},
    {"reasoningContent": {"redactedContent": "UlcxPQ=="}},
    {"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": "ö"}}},
    {"toolUse": {"toolUseId": "t", "name": "g", "input": {}}},
    {"toolUse": {"toolUseId": "t", "name": "h"}},
    {"toolUse": {"toolUseId": "s", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}},
    {"toolResult": {"toolUseId": "s", "content": [{"json": {"a": 1}}], "type": "nova_grounding_result"}},
    {"citationsContent": {"content": [{"text": "cited"}], "citations": CITATIONS}},
    {"image": {"format": "png", "source": SOURCE}},
    {"audio": {"format": "mp3", "source": SOURCE}},
    {"blockOfTomorrow": {"text": "x"}},
]
REASONS = {
    **dict.fromkeys(("end_turn", "tool_use", "stop_sequence", "reason_of_tomorrow"), "stop"),
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("guardrail_intervened", "content_filtered"), "content_filter"),
}
USAGE = {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 3, "cacheWriteInputTokens": 4, "totalTokens": 22}
OF_MODEL = {"additionalModelResponseFields": {"stop_sequence": "END"}}
OF_REQUEST = {
    "trace": {"guardrail": {"actionReason": "No action.", "inputAssessment": {"g": {}}}},
    "performanceConfig": {"latency": "standard"},
    "serviceTier": {"type": "default"},
}


@settings(max_examples=examples(40, 150), deadline=None)
@given(
    blocks=st.lists(st.sampled_from(BLOCKS), max_size=6),
    reason=st.sampled_from(sorted(REASONS)),
    model=st.sampled_from([CLAUDE, NOVA]),
    size=st.integers(1, 5),
    usage_first=st.booleans(),
    cuts=st.lists(st.integers(0, 1 << 16), max_size=6),
)
def test_answer__of_documented_blocks__the_same_whole_and_streamed(
    blocks: list[Json], reason: str, model: str, size: int, usage_first: bool, cuts: list[int]
) -> None:
    if reason == "reason_of_tomorrow":
        blocks = [{"text": "An empty answer for an unknown reason is unusable. "}, *blocks]
    content = [numbered(block, number) for number, block in enumerate(blocks)]
    request = bedrock_request(model)
    stopped, metadata_fields = {"stopReason": reason, **OF_MODEL}, {"usage": USAGE, **OF_REQUEST}
    response = {"output": {"message": {"content": content}}, **stopped, **metadata_fields}
    answer = json.loads(ADAPTER.parse_response(request, json.dumps(response).encode()).body)
    message = answer["choices"][0]["message"]
    uses = [block["toolUse"] for block in content if "toolUse" in block and "type" not in block["toolUse"]]
    assert (message["content"] or "") == "".join(map(text_of, content))
    assert [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls", [])
    ] == [(use["toolUseId"], use["name"], use.get("input", {})) for use in uses]
    expected = "tool_calls" if uses and REASONS[reason] == "stop" else REASONS[reason]
    assert answer["choices"][0]["finish_reason"] == expected
    assert (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]) == (17, 5)

    end, metadata = event("messageStop", **stopped), event("metadata", **metadata_fields)
    frames = [frame for number, block in enumerate(content) for frame in framed(block, number, size)]
    wire = b"".join([event("messageStart", role="assistant"), event("eventOfTomorrow", x=1), *frames])
    wire += metadata + end if usage_first else end + metadata
    chunks = decoded(run(ADAPTER.stream(request), list(pieces(wire, cuts))))
    lists = as_the_sdk_does(chunks)
    for name in ("annotations", "images"):
        found = [{key: value for key, value in one.items() if key != "index"} for one in lists.get(name, [])]
        assert found == message.pop(name, [])
    streamed = assembled(chunks)
    assert {**streamed["message"], "content": streamed["message"]["content"] or ""} == {
        **message,
        "content": message["content"] or "",
    }
    assert (streamed["finish_reason"], streamed["usage"]) == (expected, answer["usage"])


def numbered(block: Json, number: int) -> Json:
    if "toolUse" not in block:
        return block
    return {"toolUse": {**block["toolUse"], "toolUseId": f"{block['toolUse']['toolUseId']}_{number}"}}


def text_of(block: Json) -> str:
    cited = block.get("citationsContent", {}).get("content", [])
    return str(block.get("text", "")) + "".join(part["text"] for part in cited)


def framed(block: Json, index: int, size: int) -> Iterator[bytes]:
    """Yields the frames of the block as ConverseStream sends it, texts in pieces of `size` characters."""
    (kind,) = block
    start, deltas = opened(kind, block[kind], size)
    if start:
        yield event("contentBlockStart", contentBlockIndex=index, start={kind: start})
    for delta in deltas:
        yield event("contentBlockDelta", contentBlockIndex=index, delta=delta, p="abc")
    yield event("contentBlockStop", contentBlockIndex=index)


def opened(kind: str, content: Any, size: int) -> tuple[Json, list[Json]]:
    match kind:
        case "text":
            return {}, [{"text": part} for part in cut(content, size)]
        case "toolUse":
            parts = cut(json.dumps(content["input"]), size) if "input" in content else []
            start = {name: value for name, value in content.items() if name != "input"}
            return start, [{"toolUse": {"input": part}} for part in parts]
        case "reasoningContent" if "reasoningText" in content:
            thought = content["reasoningText"]
            fields = [(name, part) for name in ("text", "signature") for part in cut(thought.get(name, ""), size)]
            return {}, [{kind: {name: part}} for name, part in fields]
        case "citationsContent":
            texts = [{"text": part} for part in cut(content["content"][0]["text"], size)]
            return {}, [*texts, *({"citation": citation} for citation in content["citations"])]
        case "image" | "audio":
            return {"format": content["format"]}, [{kind: {"source": content["source"]}}]
        case "toolResult":
            return {"toolUseId": content["toolUseId"], "type": content["type"]}, [{kind: content["content"]}]
    return {}, [{kind: content}]


def cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
