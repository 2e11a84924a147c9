from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage
from integrations.registry import adapter_for
from tests.integrations.adapters.assembled import as_the_sdk_does
from tests.integrations.exchanges import USAGE, chat_request, chunk, decoded, run, sse, translator

ROLE = chunk({"role": "assistant", "content": ""})
HELLO = chunk({"content": "Grüße "})
WAVE = chunk({"content": "👋"})
STOP = chunk({}, finish="stop")
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


@pytest.mark.parametrize(
    "end",
    [
        [STOP, USAGE_CHUNK],
        [chunk({}, finish="stop", usage=USAGE)],
        [chunk({"content": ""}, finish="stop", usage=USAGE)],
        [chunk({}, finish="stop", x_groq={"id": "r", "usage": USAGE})],
        [STOP, chunk({"content": ""}, usage=USAGE)],
        [STOP, chunk({"role": "assistant", "content": ""}, finish="stop", usage=USAGE)],
        [chunk({}, usage=USAGE), STOP],
        [chunk({}, finish="stop", usage={**USAGE, "completion_tokens": 1}), USAGE_CHUNK],
    ],
)
def test_stream__usage_anywhere__exactly_once_in_the_last_chunk(end: list[dict[str, Any]]) -> None:
    stream = translator()
    events = run(stream, [sse(ROLE, HELLO, WAVE, *end)])
    chunks = decoded(events)
    assert_well_formed(chunks)
    assert "".join(event.text for event in events) == "Grüße 👋"
    assert stream.usage == Usage(9, 4)
    assert (stream.finish_reason, stream.model) == ("stop", "gpt-4o-2024-08-06")


def test_stream__nothing_to_change__bytes_as_they_came() -> None:
    raw = b'{"id": "x", "object":"chat.completion.chunk","created":1,"model":"m",  "choices":[{"index":0,'
    raw += b'"delta":{"content":"\\u00fc \xf0\x9f\x91\x8b"},"logprobs":null,"finish_reason":null}],"usage":null}'
    assert translator().feed(b"data: " + raw + b"\n\n")[0].data == raw


def test_stream__usage_on_every_chunk__the_latest_once() -> None:
    early = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    chunks = decoded(
        run(translator(), [sse(chunk({"content": "a"}, usage=early), chunk({}, finish="stop", usage=USAGE))])
    )
    assert_well_formed(chunks)


def test_stream__content_beside_the_finish_reason__content_first() -> None:
    chunks = decoded(run(translator(), [sse(ROLE, chunk({"content": " 3"}, finish="stop", usage=USAGE))]))
    assert_well_formed(chunks)
    assert [item["choices"][0]["finish_reason"] for item in chunks] == [None, None, "stop"]
    assert chunks[1]["choices"][0]["delta"] == {"content": " 3"}


def test_stream__fields_missing__filled_in() -> None:
    bare = {"choices": [{"delta": {"content": "a"}}], "model": "m"}
    chunks = decoded(run(translator("xai"), [sse(HELLO, bare, chunk({}, finish="stop", usage=USAGE))]))
    assert_well_formed(chunks)
    assert chunks[1]["id"] == "chatcmpl-1"
    assert chunks[1]["choices"] == [{"delta": {"content": "a"}, "index": 0, "finish_reason": None}]


def test_stream__several_choices__each_ends_and_the_last_holds_usage() -> None:
    stream = translator()
    chunks = decoded(
        run(
            stream,
            [
                sse(
                    chunk({"content": "a"}),
                    chunk({"content": "b"}, index=1),
                    chunk({}, finish="length"),
                    chunk({"content": "c"}, index=1),
                    chunk({}, index=1, finish="stop"),
                    USAGE_CHUNK,
                )
            ],
        )
    )
    assert_well_formed(chunks)
    ends = [(c["index"], c["finish_reason"]) for item in chunks for c in item["choices"] if c["finish_reason"]]
    assert ends == [(0, "length"), (1, "stop")]
    assert stream.finish_reason == "length"


@pytest.mark.parametrize(
    ("delta", "output"),
    [
        ({"role": "assistant"}, False),
        ({"role": "assistant", "content": ""}, False),
        ({"role": "assistant", "content": None, "reasoning_content": ""}, False),
        ({}, False),
        ({"content": "a"}, True),
        ({"reasoning_content": "a"}, True),
        ({"reasoning": "a"}, True),
        ({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]}, True),
        ({"refusal": "no"}, True),
        ({"audio": {"id": "a"}}, True),
    ],
)
def test_stream__first_chunk__output_or_preamble(delta: dict[str, Any], output: bool) -> None:
    assert [event.has_output for event in translator().feed(sse(chunk(delta), done=False))] == [output]


def test_stream__empty_choices_first__preamble_kept_for_the_last_chunk() -> None:
    filtered = {"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": [1]}
    stream = translator("azure_openai")
    assert stream.feed(sse(filtered, done=False)) == []
    chunks = decoded(run(stream, [sse(HELLO, STOP, USAGE_CHUNK)]))
    assert_well_formed(chunks)
    assert chunks[-1]["prompt_filter_results"] == [1]
    assert chunks[-1]["id"] == "chatcmpl-1"


def test_stream__no_usage__estimate_of_the_caller_or_none() -> None:
    stream = translator()
    stream.feed(sse(HELLO, STOP))
    assert stream.usage is None
    stream.usage = Usage(7, 3)
    assert decoded(stream.closing())[-1]["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert "usage" not in decoded(run(translator(), [sse(HELLO, STOP)]))[-1]


def test_stream__end_without_done__accepted_when_finished() -> None:
    assert_well_formed(decoded(run(translator(), [sse(HELLO, STOP, USAGE_CHUNK, done=False)])))
    assert_well_formed(decoded(run(translator(), [sse(HELLO, chunk({}, finish="stop", usage=USAGE), done=False)[:-2]])))


def test_stream__done_without_finish_reason__stop() -> None:
    assert_well_formed(decoded(run(translator("snowflake"), [sse(HELLO, USAGE_CHUNK)])))


@pytest.mark.parametrize(
    "cut",
    [sse(ROLE, HELLO, done=False), sse(ROLE, HELLO, STOP)[:-80], sse(ROLE, done=False), b"", b": ping\n\n", sse()],
)
def test_stream__cut_before_its_end__unusable(cut: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        run(translator(), [cut])
    assert caught.value.kind is FailureKind.UNUSABLE


ERROR = {"error": {"message": "tool_use_failed", "type": "invalid_request_error", "status_code": 400}}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (sse(ERROR), FailureKind.REJECTED),
        (b"event: error\n" + sse(ERROR), FailureKind.REJECTED),
        (b"event: error\ndata: tool_use_failed\n\n", FailureKind.UNAVAILABLE),
        (sse({"error": {"message": "tool_use_failed", "code": 429}, "choices": []}), FailureKind.RATE_LIMITED),
        (sse({"object": "error", "message": "tool_use_failed", "code": 503}), FailureKind.UNAVAILABLE),
        (sse({"message": "tool_use_failed", "code": 429}), FailureKind.RATE_LIMITED),
        (sse({"detail": "tool_use_failed"}), FailureKind.UNAVAILABLE),
        (
            sse({"choices": [{"index": 0, "error": {"message": "tool_use_failed", "code": 502}}]}),
            FailureKind.UNAVAILABLE,
        ),
    ],
)
def test_stream__error_inside_200__raised_and_nothing_before_it_lost(error: bytes, kind: FailureKind) -> None:
    first = translator()
    with pytest.raises(ProviderError, match="tool_use_failed") as caught:
        first.feed(error)
    assert caught.value.kind is kind
    later = translator()
    assert len(later.feed(sse(ROLE, HELLO, done=False) + error)) == 2
    with pytest.raises(ProviderError, match="tool_use_failed"):
        later.closing()


def test_stream__json_error_instead_of_a_stream__its_message() -> None:
    with pytest.raises(ProviderError, match="no such model") as caught:
        run(translator(), [b'{"error": {"message": "no such', b' model", "code": 404}}'])
    assert caught.value.kind is FailureKind.NOT_FOUND


def test_stream__unreadable_chunk__only_this_stream_fails() -> None:
    stream = translator()
    with pytest.raises(ProviderError) as caught:
        stream.feed(b"data: {not json}\n\n")
    assert caught.value.kind is FailureKind.UNUSABLE


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


@pytest.mark.parametrize("given", ["", "call_0", None])
def test_stream__calls_without_an_id_of_their_own__distinct(given: str | None) -> None:
    deltas = [
        tool_delta(0, given, "one", ""),
        tool_delta(0, None, None, "{}"),
        tool_delta(1, given, "two", ""),
        tool_delta(1, None, None, '{"a":'),
        tool_delta(1, None, None, "1}"),
    ]
    events = [*deltas, chunk({}, finish="tool_calls")]
    chunks = decoded(run(translator(), [sse(*events)]))
    fragments = [call for one in chunks for call in one["choices"][0]["delta"].get("tool_calls", [])]
    ids = [call["id"] for call in fragments if call.get("id")]
    assert len(ids) == len(set(ids)) == 2
    assert calls_of(chunks) == {0: ("one", "{}"), 1: ("two", '{"a":1}')}


def test_stream__custom_tool_named_in_each_delta__named_once_and_its_input_as_it_came() -> None:
    head = {"index": 0, "id": "c", "type": "custom"}
    deltas = [{**head, "custom": {"name": "sh", "input": piece}} for piece in ("", "ls ", "-l")]

    events = [*(chunk({"tool_calls": [delta]}) for delta in deltas), chunk({}, finish="tool_calls")]

    message = as_the_sdk_does(decoded(run(translator(), [sse(*events)])))

    assert message["tool_calls"] == [{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}]


@pytest.mark.parametrize("pieces", [("",), (None,), ("  ", ""), ('{"a"', ":1}"), ({"a": 1},)])
def test_stream__function_named_in_each_delta__named_once_and_its_arguments_are_json(pieces: tuple[Any, ...]) -> None:
    deltas = [{"function_call": {"name": "weigh", "arguments": piece}} for piece in pieces]
    events = [*(chunk(delta) for delta in deltas), chunk({}, finish="function_call")]

    chunks = decoded(run(translator(), [sse(*events)]))

    call = as_the_sdk_does(chunks)["function_call"]
    assert call["name"] == "weigh"
    assert json.loads(call["arguments"]) == ({"a": 1} if any(str(piece or "").strip() for piece in pieces) else {})
    assert chunks[-1]["choices"][0]["finish_reason"] == "function_call"


def test_stream__finish_reason_error__a_failure() -> None:
    with pytest.raises(ProviderError):
        run(translator("openrouter"), [sse(chunk({}, finish="error"))])


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("blank", [" ", ""])
def test_stream__any_cuts_and_framing__same_bytes(line_end: str, blank: str) -> None:
    body = sse(ROLE, HELLO, tool_delta(0, "a", "weather", "{}"), WAVE, STOP, USAGE_CHUNK).decode()
    raw = (": hello\n\n" + body).replace("data: ", f"data:{blank}").replace("\n", line_end).encode()
    whole = [event.data for event in run(translator(), [raw])]
    assert_well_formed([json.loads(data) for data in whole])
    source = random.Random(4)
    for _ in range(50):
        cuts = sorted(source.sample(range(1, len(raw)), source.randint(0, 60)))
        pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
        assert [event.data for event in run(translator(), pieces)] == whole
    assert [event.data for event in run(translator(), [bytes([byte]) for byte in raw])] == whole


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


def test_stream__without_an_id__another_for_another_request_and_the_same_for_the_same() -> None:
    stream = [sse(*identified(id=[""]))]
    streams = [adapter_for("openai").stream(chat_request(user=user)) for user in ("a", "b", "a")]
    ids = [decoded(run(translated, stream))[0]["id"] for translated in streams]
    assert ids[0] == ids[2] != ids[1]


def test_stream__preamble_without_an_id__the_answers_own_for_all() -> None:
    """Azure sends its filter's result for the prompt before there is an answer."""
    preamble = chunk(id="", created=0, model="", prompt_filter_results=[{"prompt_index": 0}])
    chunks = decoded(run(translator("azure_openai"), [sse(preamble, *identified())]))
    assert {chunk["id"] for chunk in chunks} == {"chatcmpl-1"}
    assert {chunk["created"] for chunk in chunks} == {1700000000}
