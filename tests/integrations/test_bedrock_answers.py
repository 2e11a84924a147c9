"""Tests whole answers of Converse that no recording holds."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from botocore.session import Session

from integrations.providers.bedrock import ADAPTER
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage
from tests.integrations.bedrock_answers import (
    COUNTS,
    METADATA,
    START,
    STOP,
    USAGE,
    choice_of,
    delta,
    deltas,
    ended,
    run,
    started,
)
from tests.integrations.bedrock_exchanges import CLAUDE, KEYS, NOVA, bedrock_request, event


def answer(*blocks: dict[str, Any], stop: str = "end_turn", usage: dict[str, Any] | None = None) -> bytes:
    message = {"role": "assistant", "content": list(blocks)}
    return json.dumps({"output": {"message": message}, "stopReason": stop, "usage": usage or USAGE}).encode()


def message_of(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = choice_of(answer(*blocks), **more)["message"]
    return message


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
        with pytest.raises(ProviderError, match=stop or "none given"):
            ADAPTER.parse_response(bedrock_request(), answer(stop=stop))
        with pytest.raises(ProviderError, match=stop or "none given"):
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


def test_answer__without_usage__zeros_and_no_figure_for_the_record() -> None:
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    assert run(START, delta(text="x"), STOP)[-1]["usage"] == zeros
    body = json.dumps({"output": {"message": {"content": [{"text": "x"}]}}, "stopReason": "end_turn"}).encode()
    parsed = ADAPTER.parse_response(bedrock_request(), body)
    assert (json.loads(parsed.body)["usage"], parsed.usage) == (zeros, None)
    blocked = answer(stop="guardrail_intervened", usage={"inputTokens": 0, "outputTokens": 0, "totalTokens": 0})
    assert ADAPTER.parse_response(bedrock_request(), blocked).usage == Usage()
