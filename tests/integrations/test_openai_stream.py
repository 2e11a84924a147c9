from __future__ import annotations

import time
from typing import Any

import pytest

from tests.integrations.exchanges import USAGE, chunk, decoded, run, sse, translator

ROLE = chunk({"role": "assistant", "content": ""})
USAGE_CHUNK = chunk(None, usage=USAGE)


def assert_well_formed(chunks: list[dict[str, Any]]) -> None:
    """Asserts the rules of a stream (docs/chat-completions.md#streams)."""
    *before, last = chunks
    assert all("usage" not in item or item["usage"] is None for item in before)
    assert last["usage"] == USAGE
    assert last["choices"][0]["delta"] == {}
    assert last["choices"][0]["finish_reason"] is not None
    for item in chunks:
        assert isinstance(item["id"], str)
        assert item["object"] == "chat.completion.chunk"
        assert isinstance(item["created"], int)
        assert isinstance(item["model"], str)


def tool_delta(index: int | None, call_id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    call: dict[str, Any] = {"function": {"arguments": arguments} | ({"name": name} if name else {})}
    if index is not None:
        call["index"] = index
    return chunk({"tool_calls": [call | ({"id": call_id, "type": "function"} if call_id else {})]})


def calls_of(chunks: list[dict[str, Any]]) -> dict[int, tuple[str, str]]:
    """Returns a mapping from index to (name, arguments), joined as a client does."""
    calls: dict[int, tuple[str, str]] = {}
    for item in chunks:
        for call in item["choices"][0]["delta"].get("tool_calls", []):
            name, arguments = calls.get(call["index"], ("", ""))
            function = call["function"]
            calls[call["index"]] = (name + (function.get("name") or ""), arguments + (function.get("arguments") or ""))
    return calls


EXPECTED_CALLS = {0: ("weather", '{"city":"Rom"}'), 1: ("time", '{"zone":1}')}


@pytest.mark.parametrize(
    "deltas",
    [
        [  # OpenAI streams its calls like this.
            tool_delta(0, "a", "weather", ""),
            tool_delta(0, None, None, '{"city"'),
            tool_delta(0, None, None, ':"Rom"}'),
            tool_delta(1, "b", "time", ""),
            tool_delta(1, None, None, '{"zone":1}'),
        ],
        [  # The vendor sends every call under index 0.
            tool_delta(0, "a", "weather", '{"city":'),
            tool_delta(0, None, None, '"Rom"}'),
            tool_delta(0, "b", "time", '{"zone":'),
            tool_delta(0, None, None, "1}"),
        ],
        [tool_delta(None, "a", "weather", '{"city":"Rom"}'), tool_delta(None, "b", "time", '{"zone":1}')],
        [tool_delta(0, None, "weather", '{"city":"Rom"}'), tool_delta(0, None, "time", '{"zone":1}')],
        [tool_delta(None, None, "weather", '{"city":"Rom"}'), tool_delta(None, None, "time", '{"zone":1}')],
        [tool_delta(1, "a", "weather", '{"city":"Rom"}'), tool_delta(2, "b", "time", '{"zone":1}')],
        [tool_delta(0, "a", "weather", {"city": "Rom"}), tool_delta(1, "b", "time", {"zone": 1})],
        [  # The vendor sends a fresh id in each delta, and the name only in the first.
            tool_delta(0, "a", "weather", '{"city":'),
            tool_delta(0, "a2", None, '"Rom"}'),
            tool_delta(1, "b", "time", '{"zone":1}'),
        ],
    ],
)
@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
def test_stream__tool_calls__distinct_indices_text_arguments_and_reason(
    deltas: list[dict[str, Any]], finish: str
) -> None:
    stream = translator()
    chunks = decoded(run(stream, [sse(ROLE, *deltas, chunk({}, finish=finish), USAGE_CHUNK)]))
    assert_well_formed(chunks)
    assert calls_of(chunks) == EXPECTED_CALLS
    assert stream.finish_reason == chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def identified(**heads: list[Any]) -> list[dict[str, Any]]:
    """Returns a stream whose chunks have these top-level values, one after the other; a value of `...` is left out."""
    identified_chunks = []
    chunks = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": '1700000000 and "chatcmpl-1"'}),
        chunk({"reasoning": "Hm"}),
        chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}),
        chunk({}, finish="stop"),
        chunk(usage=USAGE),
    ]
    for number, item in enumerate(chunks):
        for name, values in heads.items():
            item[name] = values[min(number, len(values) - 1)]
        identified_chunks.append({name: value for name, value in item.items() if value is not ...})
    return identified_chunks


@pytest.mark.parametrize(
    ("heads", "same_id"),
    [
        ({}, True),
        ({"id": [""], "created": [0]}, False),
        ({"id": [""]}, False),
        ({"created": [0]}, True),
        ({"created": [0, 1700000000]}, True),
        ({"id": [None], "created": [None]}, False),
        ({"id": [...], "created": [...]}, False),
        ({"id": [5], "created": ["now"]}, False),
        ({"id": ["a", "b", "c", "d", "e", "f"]}, True),
        ({"created": [1700000000, 1700000001, 1700000002, 1700000003]}, True),
        ({"id": ["a", ""], "created": [1700000000, 0]}, True),
        ({"id": ["", "a", "b"], "created": [0, 5, 6]}, False),
        ({"id": ["a", "b"], "created": [1700000000.5, 1e300, -3]}, True),
    ],
    ids=str,
)
def test_stream__any_id_and_time__one_of_each_for_all_chunks(heads: dict[str, list[Any]], same_id: bool) -> None:
    sent = identified(**heads)
    before = int(time.time())
    chunks = decoded(run(translator(), [sse(*sent)]))
    assert len({chunk["id"] for chunk in chunks}) == len({chunk["created"] for chunk in chunks}) == 1
    assert isinstance(chunks[0]["id"], str)
    assert (chunks[0]["id"] == sent[0].get("id")) == same_id
    assert chunks[0]["id"]
    assert chunks[0]["created"] >= 1700000000
    assert chunks[0]["created"] == 1700000000 or chunks[0]["created"] >= before
    assert [chunk["choices"][0]["delta"].get("content") for chunk in chunks][1] == '1700000000 and "chatcmpl-1"'
