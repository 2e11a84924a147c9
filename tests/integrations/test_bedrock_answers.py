"""Tests answers of Converse and ConverseStream that no recording holds, and their failures."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from botocore.session import Session
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.providers.base import ChatRequest, Credentials, StreamEvent
from integrations.providers.bedrock import ADAPTER
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage
from tests.fakes.dialects.bedrock import FAKE, frame
from tests.fakes.dialects.story import Call, Story
from tests.integrations.bedrock_exchanges import CLAUDE, KEYS, NOVA, bedrock_request, event, exception

USAGE = {
    "inputTokens": 10,
    "outputTokens": 4,
    "totalTokens": 44,
    "cacheReadInputTokens": 25,
    "cacheWriteInputTokens": 5,
}
COUNTS = Usage(prompt_tokens=40, completion_tokens=4, cache_read_tokens=25, cache_write_tokens=5)
START, STOP = event("messageStart", role="assistant"), event("messageStop", stopReason="end_turn")
METADATA = event("metadata", usage=USAGE, metrics={"latencyMs": 1})


def answer(*blocks: dict[str, Any], stop: str = "end_turn", usage: dict[str, Any] | None = None) -> bytes:
    message = {"role": "assistant", "content": list(blocks)}
    return json.dumps({"output": {"message": message}, "stopReason": stop, "usage": usage or USAGE}).encode()


def choice_of(body: bytes, request: ChatRequest | None = None) -> dict[str, Any]:
    parsed = ADAPTER.parse_response(request or bedrock_request(), body)
    (choice,) = json.loads(parsed.body)["choices"]
    assert choice["finish_reason"] == parsed.finish_reason
    found: dict[str, Any] = choice
    return found


def message_of(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = choice_of(answer(*blocks), **more)["message"]
    return message


def run(*frames: bytes, request: ChatRequest | None = None) -> list[dict[str, Any]]:
    stream = ADAPTER.stream(request or bedrock_request(stream=True))
    events: list[StreamEvent] = []
    for piece in frames:
        events += stream.feed(piece)
    return [json.loads(item.data) for item in events + stream.closing()]


def deltas(*frames: bytes, **more: Any) -> list[dict[str, Any]]:
    return [chunk["choices"][0]["delta"] for chunk in run(*frames, **more)]


def delta(index: int = 0, **fields: Any) -> bytes:
    return event("contentBlockDelta", contentBlockIndex=index, delta=fields)


def started(index: int, **fields: Any) -> bytes:
    return event("contentBlockStart", contentBlockIndex=index, start=fields)


def ended(index: int) -> bytes:
    return event("contentBlockStop", contentBlockIndex=index)


# Every `stopReason` of Converse is mapped to the outcome of an answer with text; `UNUSABLE` is no answer.
STOP_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",  # The reason comes from the vendor's own tools, since none of the client's was called.
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "malformed_model_output": FailureKind.UNUSABLE,
    "malformed_tool_use": FailureKind.UNUSABLE,
}

UNKNOWN_REASONS = [("of_tomorrow", FailureKind.UNUSABLE), ("", FailureKind.UNUSABLE)]


def test_stop_reasons__of_the_service_model__each_has_its_outcome() -> None:
    shape: Any = Session().get_service_model("bedrock-runtime").shape_for("StopReason")
    assert set(shape.enum) == set(STOP_REASONS)


@pytest.mark.parametrize(("stop", "outcome"), [*STOP_REASONS.items(), ("of_tomorrow", "stop"), ("", "stop")])
def test_finish__each_stop_reason_behind_a_text__openais_word_or_unusable(stop: str, outcome: str) -> None:
    whole = answer({"text": "x"}, stop=stop)
    frames = START, delta(text="x"), ended(0), event("messageStop", stopReason=stop), METADATA
    if outcome is FailureKind.UNUSABLE:
        with pytest.raises(ProviderError) as caught:
            ADAPTER.parse_response(bedrock_request(), whole)
        assert (caught.value.kind, caught.value.usage) == (outcome, COUNTS)
        with pytest.raises(ProviderError) as caught:
            run(*frames)
        assert (caught.value.kind, caught.value.usage) == (outcome, COUNTS)
        return
    assert choice_of(whole)["finish_reason"] == outcome
    assert run(*frames)[-1]["choices"][0]["finish_reason"] == outcome


@pytest.mark.parametrize(("stop", "outcome"), [*STOP_REASONS.items(), *UNKNOWN_REASONS])
def test_finish__each_stop_reason_of_an_empty_answer__empty_or_unusable(stop: str, outcome: str) -> None:
    frames = START, event("messageStop", stopReason=stop), METADATA
    if outcome is FailureKind.UNUSABLE:
        with pytest.raises(ProviderError, match=stop or "none told"):
            ADAPTER.parse_response(bedrock_request(), answer(stop=stop))
        with pytest.raises(ProviderError, match=stop or "none told"):
            run(*frames)
        return
    choice = choice_of(answer(stop=stop))
    assert (choice["message"]["content"], choice["finish_reason"]) == ("", outcome)
    assert run(*frames)[-1]["choices"][0]["finish_reason"] == outcome


def test_answer__usage__cached_and_written_tokens_are_part_of_the_prompt() -> None:
    assert ADAPTER.parse_response(bedrock_request(), answer({"text": "x"})).usage == COUNTS
    odd = {"inputTokens": -3, "outputTokens": 2.0, "cacheReadInputTokens": None}
    assert ADAPTER.parse_response(bedrock_request(), answer(usage=odd)).usage == Usage(0, 2)


def test_answer__blocked_before_any_output__empty_and_filtered() -> None:
    choice = choice_of(answer(stop="guardrail_intervened"))
    assert (choice["message"]["content"], choice["finish_reason"]) == ("", "content_filter")


def test_answer__calls__arguments_as_sent_and_distinct_ids() -> None:
    use = {"toolUseId": "t1", "name": "look", "input": {"b": 1, "a": [1.50, None]}}
    message = message_of({"toolUse": use}, {"toolUse": {**use, "input": {}}}, {"toolUse": {"name": "look"}})
    assert message["content"] is None
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == use["input"]
    assert [call["id"] for call in message["tool_calls"]] == ["t1", "call_1", "call_2"]
    assert message["tool_calls"][2]["function"]["arguments"] == "{}"


def test_answer__the_vendors_own_tool__no_call_of_the_client() -> None:
    blocks = (
        {"toolUse": {"toolUseId": "t1", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}},
        {"toolResult": {"toolUseId": "t1", "content": [{"text": "[HIDDEN]"}], "status": "success"}},
        {"text": "Ruby 4."},
        {"citationsContent": {"citations": [{"location": {"web": {"url": "https://r.test/", "domain": "r.test"}}}]}},
    )
    choice = choice_of(answer(*blocks, stop="tool_use"))
    assert choice["finish_reason"] == "stop"
    assert "tool_calls" not in choice["message"]
    citation = {"url": "https://r.test/", "title": "r.test", "start_index": 0, "end_index": 7}
    assert choice["message"]["annotations"] == [{"type": "url_citation", "url_citation": citation}]


def test_answer__cited_text__part_of_the_text_and_documents_are_no_urls() -> None:
    web = {"title": "T", "location": {"web": {"url": "https://r.test/"}}}
    page = {"title": "Doc", "location": {"documentPage": {"documentIndex": 0, "start": 1, "end": 2}}}
    cited = {"content": [{"text": "is 4"}], "citations": [page, web]}
    message = message_of({"text": "Ruby "}, {"citationsContent": cited}, {"text": "."})
    assert message["content"] == "Ruby is 4."
    (note,) = message["annotations"]
    assert message["content"][note["url_citation"]["start_index"] : note["url_citation"]["end_index"]] == "is 4"


def test_answer__image__as_a_data_url() -> None:
    message = message_of({"image": {"format": "png", "source": {"bytes": "iVBORw=="}}})
    assert message["images"] == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}]
    image = {"source": {"bytes": "iVBORw=="}}
    found = deltas(START, started(0, image={"format": "png"}), delta(image=image), ended(0), STOP)
    assert found[1]["images"] == [{**message["images"][0], "index": 0}]


@pytest.mark.parametrize(("model", "form"), [(CLAUDE, "anthropic-claude-v1"), (NOVA, "amazon-bedrock-v1")])
def test_reasoning__signed_and_redacted__comes_back_as_it_was(model: str, form: str) -> None:
    redacted = base64.b64encode(b"RXRr\xff+/==").decode()
    blocks: list[dict[str, Any]] = [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": redacted}},
        {"text": "Yes."},
    ]
    request = bedrock_request(model)
    message = choice_of(answer(*blocks), request)["message"]
    assert (message["content"], message["reasoning_content"]) == ("Yes.", "Hm.")
    assert [detail["format"] for detail in message["reasoning_details"]] == [form, form]
    user = {"role": "user", "content": "Go on."}
    again = ADAPTER.build_request(bedrock_request(model, messages=[user, message, user]), KEYS)
    assert json.loads(again.body)["messages"][1]["content"] == blocks
    streamed = deltas(
        START,
        delta(reasoningContent={"text": "H"}),
        delta(reasoningContent={"text": "m."}),
        delta(reasoningContent={"signature": "c2ln"}),
        ended(0),
        delta(1, reasoningContent={"redactedContent": redacted[:4]}),
        delta(1, reasoningContent={"redactedContent": redacted[4:]}),
        ended(1),
        delta(2, text="Yes."),
        STOP,
        request=request,
    )
    details = [detail for item in streamed for detail in item.get("reasoning_details", ())]
    assert details == message["reasoning_details"]
    assert "".join(item.get("reasoning_content", "") for item in streamed) == "Hm."


def test_reasoning__between_calls__comes_back_in_its_place() -> None:
    def thought(text: str) -> dict[str, Any]:
        return {"reasoningContent": {"reasoningText": {"text": text, "signature": f"signed {text}"}}}

    def use(call_id: str) -> dict[str, Any]:
        return {"toolUse": {"toolUseId": call_id, "name": "look", "input": {}}}

    blocks = [thought("one"), {"text": "Wait."}, thought("two"), use("t1"), thought("three"), use("t2")]
    message = choice_of(answer(*blocks, stop="tool_use"))["message"]
    user = {"role": "user", "content": "Hi"}
    results = [{"role": "tool", "tool_call_id": call_id, "content": "x"} for call_id in ("t1", "t2")]
    for assistant_message in (message, {**message, "reasoning_details": streamed_details(blocks)}):
        again = ADAPTER.build_request(bedrock_request(messages=[user, assistant_message, *results, user]), KEYS)
        _, assistant, answered = json.loads(again.body)["messages"]
        assert assistant["content"] == blocks
        assert [next(iter(block)) for block in answered["content"]] == ["toolResult", "toolResult", "text"]


def streamed_details(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    frames: list[bytes] = []
    for index, block in enumerate(blocks):
        if "toolUse" in block:
            use = block["toolUse"]
            frames.append(started(index, toolUse={"toolUseId": use["toolUseId"], "name": use["name"]}))
        elif "text" in block:
            frames.append(delta(index, text=block["text"]))
        else:
            thought = block["reasoningContent"]["reasoningText"]
            frames += [delta(index, reasoningContent={name: thought[name]}) for name in ("text", "signature")]
        frames.append(ended(index))
    stop = event("messageStop", stopReason="tool_use")
    return [detail for item in deltas(START, *frames, stop) for detail in item.get("reasoning_details", ())]


def test_reasoning__unsigned__text_alone() -> None:
    message = message_of({"reasoningContent": {"reasoningText": {"text": "Hm."}}}, {"text": "x"})
    assert message["reasoning_content"] == "Hm."
    assert "reasoning_details" not in message


def test_answer__call_against_the_clients_word__left_out() -> None:
    request = bedrock_request(tool_choice="none")
    body = answer({"text": "x"}, {"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}, stop="tool_use")
    choice = choice_of(body, request)
    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] == "stop"
    start = started(1, toolUse={"toolUseId": "t", "name": "look"})
    frames = (START, delta(text="x"), ended(0), start, delta(1, toolUse={"input": "{}"}), ended(1), STOP)
    assert not any("tool_calls" in item for item in deltas(*frames, request=request))


@pytest.mark.parametrize(
    ("blocks", "stop"),
    [
        ([], "malformed_model_output"),
        ([], "malformed_tool_use"),
        ([{"text": "x"}, {"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}], "malformed_tool_use"),
    ],
)
def test_answer__broken_by_the_model__unusable_and_billed(blocks: list[dict[str, Any]], stop: str) -> None:
    with pytest.raises(ProviderError) as caught:
        ADAPTER.parse_response(bedrock_request(), answer(*blocks, stop=stop))
    assert (caught.value.kind, caught.value.usage) == (FailureKind.UNUSABLE, COUNTS)
    start = started(0, toolUse={"toolUseId": "t", "name": "look"})
    with pytest.raises(ProviderError) as caught:
        run(START, *([start] if blocks else []), event("messageStop", stopReason=stop), METADATA)
    assert (caught.value.kind, caught.value.usage) == (FailureKind.UNUSABLE, COUNTS)


@pytest.mark.parametrize(
    "body",
    [
        b'{"output": {"message": {"content": "text"}}}',
        b'{"output": {"message": {"content": [{"text": 7}]}}}',
        b'{"output": {}}',
        b'{"output": {"message": {"content": [{"reasoningContent": {"redactedContent": "%%%"}}]}}}',
        b'{"Output": {"__type": "com.amazon.coral.service#UnknownOperationException"}, "Version": "1.0"}',
    ],
)
def test_answer__of_another_form__unusable(body: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        ADAPTER.parse_response(bedrock_request(), body)
    assert caught.value.kind is FailureKind.UNUSABLE


def test_stream__call_without_input__an_empty_object() -> None:
    start = started(0, toolUse={"toolUseId": "t1", "name": "look"})
    for end in ((ended(0),), ()):
        found = deltas(START, start, delta(toolUse={"input": ""}), *end, event("messageStop", stopReason="tool_use"))
        calls = [call for item in found for call in item.get("tool_calls", ())]
        assert "".join(call["function"]["arguments"] for call in calls) == "{}"


def test_stream__blocks_side_by_side__each_fragment_at_its_call() -> None:
    found = deltas(
        START,
        started(1, toolUse={"toolUseId": "t1", "name": "a"}),
        started(2, toolUse={"toolUseId": "t1", "name": "b"}),
        delta(2, toolUse={"input": '{"b"'}),
        delta(1, toolUse={"input": '{"a": 1}'}),
        delta(2, toolUse={"input": ": 2}"}),
        delta(7, toolUse={"input": "to nobody"}),
        event("messageStop", stopReason="tool_use"),
    )
    texts: dict[int, str] = {}
    for call in (call for item in found for call in item.get("tool_calls", ())):
        texts[call["index"]] = texts.get(call["index"], "") + call["function"]["arguments"]
    assert texts == {0: '{"a": 1}', 1: '{"b": 2}'}
    assert [call["id"] for item in found for call in item.get("tool_calls", ()) if "id" in call] == ["t1", "call_1"]


def test_stream__citations__numbered_and_placed() -> None:
    def cited(index: int, url: str) -> bytes:
        return delta(index, citation={"location": {"web": {"url": url}}})

    found = deltas(
        START, delta(text="one "), delta(1, text="two"), cited(1, "https://b.test"), cited(2, "https://c.test"), STOP
    )
    notes = [note for item in found for note in item.get("annotations", ())]
    assert [note["index"] for note in notes] == [0, 1]
    places = [(note["url_citation"]["start_index"], note["url_citation"]["end_index"]) for note in notes]
    assert places == [(4, 7), (4, 7)]


def test_answer__without_usage__zeros_and_no_figure_for_the_record() -> None:
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    assert run(START, delta(text="x"), STOP)[-1]["usage"] == zeros
    body = json.dumps({"output": {"message": {"content": [{"text": "x"}]}}, "stopReason": "end_turn"}).encode()
    parsed = ADAPTER.parse_response(bedrock_request(), body)
    assert (json.loads(parsed.body)["usage"], parsed.usage) == (zeros, None)
    blocked = answer(stop="guardrail_intervened", usage={"inputTokens": 0, "outputTokens": 0, "totalTokens": 0})
    assert ADAPTER.parse_response(bedrock_request(), blocked).usage == Usage()


def test_stream__without_usage__ends_all_the_same() -> None:
    stream = ADAPTER.stream(bedrock_request(stream=True))
    stream.feed(START + delta(text="x") + STOP)
    assert stream.usage is None
    stream.usage = Usage(3, 1)
    assert json.loads(stream.closing()[-1].data)["usage"]["total_tokens"] == 4


@pytest.mark.parametrize(
    ("name", "kind", "status"),
    [
        ("throttlingException", FailureKind.RATE_LIMITED, 429),
        ("modelStreamErrorException", FailureKind.UNAVAILABLE, 424),
        ("internalServerException", FailureKind.UNAVAILABLE, 500),
        ("serviceUnavailableException", FailureKind.UNAVAILABLE, 503),
        ("validationException", FailureKind.REJECTED, 400),
        ("modelTimeoutException", FailureKind.TIMEOUT, 408),
        ("exceptionOfTomorrow", FailureKind.UNAVAILABLE, None),
    ],
)
@pytest.mark.parametrize("before", [(), (START, delta(text="x"))])
def test_stream__exception__its_kind_behind_all_output(
    name: str, kind: FailureKind, status: int | None, before: tuple[bytes, ...]
) -> None:
    stream = ADAPTER.stream(bedrock_request(stream=True))
    events: list[StreamEvent] = []
    with pytest.raises(ProviderError) as caught:
        events += stream.feed(b"".join([*before, exception(name, "account 123456789012 is busy")]))
        stream.closing()
    assert (caught.value.kind, caught.value.status, caught.value.provider) == (kind, status, "bedrock")
    assert caught.value.message == "account [redacted] is busy"
    assert "".join(item.text for item in events) == ("x" if before else "")
    with pytest.raises(ProviderError):
        stream.feed(b"")


def test_stream__exception_behind_the_usage__is_billed() -> None:
    stream = ADAPTER.stream(bedrock_request(stream=True))
    stream.feed(START + delta(text="x") + METADATA)
    with pytest.raises(ProviderError) as caught:
        stream.feed(exception("modelStreamErrorException", "broken"))
    assert caught.value.usage == COUNTS


def test_stream__error_frame_without_a_payload__read_from_its_headers() -> None:
    headers = {":message-type": "error", ":error-code": "InternalServerException", ":error-message": "it broke"}
    with pytest.raises(ProviderError, match="it broke") as caught:
        run(START, frame(headers, {}))
    assert caught.value.kind is FailureKind.UNAVAILABLE


@pytest.mark.parametrize(
    "bad",
    [
        delta(text="y")[:-1] + b"\x00",
        b"\x00\x00\x00\x10" + delta(text="y")[4:],
        frame({":message-type": "event", ":event-type": "contentBlockDelta"}, {"delta": "no object"}),
        b"data: {}\n\ndata: [DONE]\n\n",
        b'{"message": "not a stream at all"}',
    ],
)
def test_stream__broken_frame__unusable_and_what_came_before_kept(bad: bytes) -> None:
    for pieces in ((START + delta(text="x") + bad,), (START + delta(text="x"), bad)):
        stream = ADAPTER.stream(bedrock_request(stream=True))
        text = ""
        with pytest.raises(ProviderError) as caught:
            for piece in pieces:
                text += "".join(item.text for item in stream.feed(piece))
            stream.closing()
        assert (caught.value.kind, text) == (FailureKind.UNUSABLE, "x")


TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
STORIES = st.builds(
    Story,
    text=TEXT,
    reasoning=TEXT,
    signature=st.sampled_from(["", "c2ln"]),
    calls=st.lists(
        st.builds(Call, st.uuids().map(str), st.just("look"), st.dictionaries(TEXT, TEXT, max_size=3)), max_size=3
    ).map(tuple),
    finish=st.sampled_from(["stop", "length", "content_filter"]),
    pieces=st.integers(1, 6),
)


@settings(max_examples=60, deadline=None)
@given(story=STORIES, cuts=st.lists(st.integers(0, 4000), max_size=10))
def test_stream__any_story_cut_anywhere__adds_up_to_the_whole_answer(story: Story, cuts: list[int]) -> None:
    body = b"".join(FAKE.stream(story).events)
    places = sorted({0, len(body), *(cut % len(body) for cut in cuts)})
    once, chunks = run(body), run(*(body[a:b] for a, b in pairwise(places)))
    assert [{**chunk, "created": 0} for chunk in chunks] == [{**chunk, "created": 0} for chunk in once]
    choice = choice_of(FAKE.whole(story).body)
    message = choice["message"]
    made = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert joined(made, "content") == (message["content"] or "") == story.text
    assert joined(made, "reasoning_content") == message.get("reasoning_content", "") == story.reasoning
    assert [d for item in made for d in item.get("reasoning_details", ())] == message.get("reasoning_details", [])
    calls = message.get("tool_calls", [])
    assert [call["id"] for item in made for call in item.get("tool_calls", ()) if "id" in call] == [
        call["id"] for call in calls
    ]
    assert chunks[-1]["choices"][0]["finish_reason"] == choice["finish_reason"]


def joined(made: Iterable[dict[str, Any]], name: str) -> str:
    return "".join(item.get(name, "") for item in made)


@pytest.mark.parametrize(
    ("status", "error_type", "kind"),
    [
        (400, "ValidationException", FailureKind.REJECTED),
        (400, "ServiceQuotaExceededException", FailureKind.RATE_LIMITED),
        (400, "ExpiredTokenException", FailureKind.CREDENTIALS),
        (400, "UnrecognizedClientException", FailureKind.CREDENTIALS),
        (400, "IncompleteSignatureException", FailureKind.CREDENTIALS),
        (403, "AccessDeniedException", FailureKind.CREDENTIALS),
        (404, "ResourceNotFoundException", FailureKind.NOT_FOUND),
        (408, "ModelTimeoutException", FailureKind.TIMEOUT),
        (424, "ModelErrorException", FailureKind.UNAVAILABLE),
        (429, "ModelNotReadyException", FailureKind.RATE_LIMITED),
        (503, "ServiceUnavailableException", FailureKind.UNAVAILABLE),
    ],
)
@pytest.mark.parametrize("field", ["message", "Message"])
def test_failure__exception__its_kind_by_header_or_body(
    status: int, error_type: str, kind: FailureKind, field: str
) -> None:
    text = f"{error_type} of arn:aws:iam::123456789012:user/x"
    header = {"x-amzn-errortype": f"{error_type}:http://internal.amazon.com/coral/com.amazon.bedrock/"}
    by_header = ADAPTER.classify_failure(status, header, json.dumps({field: text}).encode())
    typed = {"__type": f"com.amazon.coral.service#{error_type}", field: text}
    by_body = ADAPTER.classify_failure(status, {}, json.dumps(typed).encode())
    for error in (by_header, by_body):
        assert (error.kind, error.status) == (kind, status)
        assert error.message == f"{error_type} of arn:aws:iam::[redacted]:user/x"


def test_failure__own_secrets__taken_out() -> None:
    secret, token = "an+Odd/Secret", "a token of no known form"
    extra = {**KEYS.extra, "secret_access_key": secret, "session_token": token}
    ADAPTER.build_request(bedrock_request(), Credentials(1, "bedrock", "", "", extra))
    body = json.dumps({"message": f"bad {secret} and {token} of AKIDEXAMPLE"}).encode()
    assert ADAPTER.classify_failure(403, {}, body).message == "bad [redacted] and [redacted] of [redacted]"
