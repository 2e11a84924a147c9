"""Tests answers with every documented block and stop reason, whole and streamed: the client gets the same, with all
texts. https://docs.anthropic.com/en/api/messages, …/build-with-claude/streaming"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from anthropic.types.beta import BetaStopReason
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.providers.anthropic import ADAPTER
from integrations.providers.errors import FailureKind, ProviderError
from tests.integrations.adapters.assembled import as_the_sdk_does, assembled
from tests.integrations.adapters.subject import pieces
from tests.integrations.exchanges import chat_request, credentials, decoded, run
from tests.night import examples

Json = dict[str, Any]
CITATIONS: list[Json] = [
    {"type": "web_search_result_location", "url": "https://a.org", "title": "A", "encrypted_index": "E"},
    {"type": "search_result_location", "source": "https://s.org", "title": None, "search_result_index": 0},
    {"type": "char_location", "document_index": 0, "document_title": "D", "start_char_index": 0, "end_char_index": 2},
    {"type": "page_location", "document_index": 0, "document_title": None, "start_page_number": 1},
    {"type": "content_block_location", "document_index": 0, "start_block_index": 0, "end_block_index": 1},
]
ERROR = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
BLOCKS: list[Json] = [
    {"type": "text", "text": "Hallo 👋 ", "citations": None},
    {"type": "text", "text": "cited", "citations": CITATIONS},
    {"type": "text", "text": ""},
    {"type": "thinking", "thinking": "hm 🤔", "signature": "c2lnbmF0dXJl"},
    {"type": "thinking", "thinking": "", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "RW1="},
    {"type": "tool_use", "id": "toolu", "name": "f", "input": {"a": "ö", "b": [1, {}]}, "caller": {"type": "direct"}},
    {"type": "tool_use", "id": "toolu", "name": "g", "input": {}},
    {"type": "server_tool_use", "id": "srvtoolu", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result", "title": "A"}]},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": ERROR},
    {"type": "web_fetch_tool_result", "tool_use_id": "s", "content": {"type": "web_fetch_result", "url": "https://a"}},
    {"type": "code_execution_tool_result", "tool_use_id": "s", "content": {"type": "code_execution_result"}},
    {"type": "bash_code_execution_tool_result", "tool_use_id": "s", "content": {"stdout": "", "return_code": 0}},
    {"type": "text_editor_code_execution_tool_result", "tool_use_id": "s", "content": {"file_type": "text"}},
    {"type": "tool_search_tool_result", "tool_use_id": "s", "content": {"tool_references": []}},
    {"type": "mcp_tool_use", "id": "mcptoolu", "name": "echo", "server_name": "m", "input": {"p": 1}},
    {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": False, "content": [{"type": "text", "text": "hid"}]},
    {"type": "container_upload", "file_id": "file_1"},
    {"type": "compaction", "content": "summary"},
    {"type": "block_of_tomorrow", "content": {"text": 1}},
]
# The reasons are all that the vendor's SDK documents, and an unknown one.
REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "pause_turn": "stop",
    "compaction": "stop",
    "reason_of_tomorrow": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
# An answer with a stop reason of this list may be empty.
COMPLETE = ("end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "refusal")
# The finish reason cannot express some stop reasons, so the client also gets the vendor's own reason.
REPORTED_REASONS = ("pause_turn", "compaction", "reason_of_tomorrow", "model_context_window_exceeded")
USAGE = {"input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "usage": {**USAGE, "server_tool_use": {"web_search_requests": 1}, "service_tier": "standard"},
}
USER = {"role": "user", "content": "Go on."}
CODE = {"type": "code_execution_20260120", "tool_id": "srvtoolu_9"}
CALLED_FROM_CODE: list[Json] = [
    {"type": "tool_use", "id": "toolu", "name": "f", "input": {"a": 1}, "caller": CODE},
    {"type": "tool_use", "id": "toolu", "name": "click", "input": {}, "toolset_name": "browser"},
]
DELTAS = {"text": "text_delta", "thinking": "thinking_delta", "signature": "signature_delta"}


@settings(max_examples=examples(40, 150), deadline=None)
@given(
    blocks=st.lists(st.sampled_from(BLOCKS), max_size=6),
    reason=st.sampled_from(sorted(REASONS)),
    size=st.integers(1, 5),
    cuts=st.lists(st.integers(0, 1 << 16), max_size=6),
)
def test_answer__of_documented_blocks__the_same_whole_and_streamed(
    blocks: list[Json], reason: str, size: int, cuts: list[int]
) -> None:
    content = [{**block, **({"id": f"{block['id']}_{n}"} if "id" in block else {})} for n, block in enumerate(blocks)]
    message = {**MESSAGE, "content": content, "stop_reason": reason}
    wire = b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events(message, size))
    if reason not in COMPLETE and not any(has_output(block) for block in content):
        assert_unusable(message, wire)
        return
    answer = json.loads(ADAPTER.parse_response(chat_request("claude-x"), json.dumps(message).encode()).body)
    choice = answer["choices"][0]
    calls = [block for block in content if block["type"] == "tool_use"]
    assert (choice["message"]["content"] or "") == "".join(block.get("text", "") for block in content)
    assert choice["message"].get("reasoning_content", "") == "".join(block.get("thinking", "") for block in content)
    assert [
        {"id": call["id"], "name": call["function"]["name"], "input": json.loads(call["function"]["arguments"])}
        for call in choice["message"].get("tool_calls", [])
    ] == [{name: block[name] for name in ("id", "name", "input")} for block in calls]
    assert choice["finish_reason"] == ("tool_calls" if calls and REASONS[reason] == "stop" else REASONS[reason])
    assert (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]) == (17, 20)
    specific = choice["message"].get("provider_specific_fields", {})
    assert specific.get("stop_reason", "") == (reason if reason in REPORTED_REASONS else "")
    own = any(is_own(block) for block in content)
    assert specific.get("content", []) == (content if own else [])

    chunks = decoded(run(ADAPTER.stream(chat_request("claude-x", stream=True)), list(pieces(wire, cuts))))
    streamed = assembled(chunks)
    annotations = as_the_sdk_does(chunks).get("annotations", [])
    assert [{k: v for k, v in one.items() if k != "index"} for one in annotations] == choice["message"].pop(
        "annotations", []
    )
    assert comparable(streamed["message"]) == comparable(choice["message"])
    assert (streamed["finish_reason"], streamed["usage"]) == (choice["finish_reason"], answer["usage"])


@settings(max_examples=examples(30, 100), deadline=None)
@given(blocks=st.lists(st.sampled_from([*BLOCKS, *CALLED_FROM_CODE]), min_size=1, max_size=6), streamed=st.booleans())
def test_answer__that_comes_back__the_vendors_blocks_where_they_were(blocks: list[Json], streamed: bool) -> None:
    """An answer with `pause_turn`, or any other, comes back in a history."""
    content = [{**block, **({"id": f"{block['id']}_{n}"} if "id" in block else {})} for n, block in enumerate(blocks)]
    response = {**MESSAGE, "content": content, "stop_reason": "pause_turn"}
    if not any(is_own(block) for block in content):
        return
    if streamed:
        wire = b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in events(response, 7))
        message = as_the_sdk_does(decoded(run(ADAPTER.stream(chat_request("claude-x", stream=True)), [wire])))
    else:
        answer = json.loads(ADAPTER.parse_response(chat_request("claude-x"), json.dumps(response).encode()).body)
        message = answer["choices"][0]["message"]
    results = [
        {"role": "tool", "tool_call_id": block["id"], "content": "ok"}
        for block in content
        if block["type"] == "tool_use"
    ]
    request = chat_request("claude-opus-4-8", messages=[USER, message, *results])
    body = json.loads(ADAPTER.build_request(request, credentials("anthropic")).body)["messages"]
    expected = [block for block in content if block["type"] != "text" or block["text"]]
    while expected and expected[-1]["type"] in ("thinking", "redacted_thinking"):
        expected.pop()
    assert [plain(block) for block in body[1]["content"]] == [plain(block) for block in expected]


def plain(block: Json) -> Json:
    """Returns the block without values that have no effect: the model itself as the caller, no citations, white space
    at the very end."""
    effective = {k: v for k, v in block.items() if v is not None and not (k == "caller" and v == {"type": "direct"})}
    return {**effective, "text": effective["text"].rstrip()} if block["type"] == "text" else effective


def comparable(message: Json) -> Json:
    specific = dict(message.get("provider_specific_fields", {}))
    if "content" in specific:
        specific["content"] = [plain(block) for block in specific["content"]]
    return {**message, "content": message["content"] or "", "provider_specific_fields": specific}


def has_output(block: Json) -> bool:
    return is_own(block) or block["type"] == "tool_use" or bool(block.get("text"))


def is_own(block: Json) -> bool:
    if block["type"] == "tool_use":
        return bool(block.get("toolset_name")) or block.get("caller", {}).get("type", "direct") != "direct"
    return bool(block.get("citations")) or block["type"] not in ("text", "thinking", "redacted_thinking")


def assert_unusable(message: Json, wire: bytes) -> None:
    with pytest.raises(ProviderError) as whole:
        ADAPTER.parse_response(chat_request("claude-x"), json.dumps(message).encode())
    with pytest.raises(ProviderError) as streamed:
        run(ADAPTER.stream(chat_request("claude-x", stream=True)), [wire])
    for error in (whole.value, streamed.value):
        assert error.kind is FailureKind.UNUSABLE
        assert repr(message["stop_reason"]) in error.message


def test_reasons__of_the_vendors_sdk__all_known_here() -> None:
    assert set(get_args(BetaStopReason)) == set(REASONS) - {"reason_of_tomorrow"}


def events(message: Json, size: int) -> Iterator[Json]:
    """Yields the message as the vendor streams it, in deltas of `size` characters."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        start, deltas = opened(block, size)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "event_of_tomorrow", "index": 0, "delta": {"type": "delta_of_tomorrow"}}
    yield {"type": "message_delta", "delta": {"stop_reason": message["stop_reason"]}, "usage": message["usage"]}
    yield {"type": "message_stop"}


def opened(block: Json, size: int) -> tuple[Json, list[Json]]:
    if "input" in block:
        parts = ["", *cut(json.dumps(block["input"]), size)]
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]
    names = [name for name in DELTAS if name in block]
    deltas: list[Json] = [{"type": "citations_delta", "citation": one} for one in block.get("citations") or ()]
    for name in names:
        deltas += [{"type": DELTAS[name], name: part} for part in cut(block[name], size)]
    return {name: "" if name in names else value for name, value in block.items() if name != "citations"}, deltas


def cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
