"""What look-alikes of the OpenAI dialect do otherwise in their answers: the name of reasoning, breaking off, errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.base import Usage
from integrations.providers.errors import FailureKind, ProviderError
from integrations.registry import adapter_for
from tests.integrations.exchanges import USAGE, chat_request, chunk, completion, decoded, run, sse, translator

DETAIL = {"type": "reasoning.text", "text": "because", "format": "anthropic-claude-v1", "index": 0}
SUMMARY = {"type": "reasoning.summary", "summary": "because", "format": "openai-responses-v1", "index": 0}
HIDDEN = {"type": "reasoning.encrypted", "data": "x", "format": "openai-responses-v1", "index": 0}
TOLD: list[tuple[dict[str, Any], str | None]] = [
    ({"reasoning": "because"}, "because"),
    ({"reasoning": "because", "reasoning_details": [DETAIL]}, "because"),
    ({"reasoning_details": [DETAIL]}, "because"),
    ({"reasoning_details": [SUMMARY]}, "because"),
    ({"reasoning_details": [HIDDEN]}, None),
    ({"reasoning": None, "reasoning_details": []}, None),
    ({"reasoning": {"odd": 1}}, None),
]
# Texts that could be taken for a key of the chunk.
TEXTS = st.one_of(
    st.text(max_size=30), st.sampled_from(['"reasoning":"', '\\"reasoning":"', '{"reasoning":"x"}', "ß\u2028"])
)


def message_of(fields: dict[str, Any], provider: str = "openrouter") -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": "", **fields}, "finish_reason": "stop"}
    body = json.dumps(completion(choices=[choice])).encode()
    answer = adapter_for(provider).parse_response(chat_request(), body)
    message: dict[str, Any] = json.loads(answer.body)["choices"][0]["message"]
    return message


@pytest.mark.parametrize(("fields", "expected"), TOLD)
def test_answer__reasoning_under_any_name__also_under_the_one_that_clients_know(
    fields: dict[str, Any], expected: str | None
) -> None:
    message = message_of(fields)
    assert message.pop("reasoning_content", None) == expected
    assert message == {"role": "assistant", "content": "", **fields}


def test_answer__reasoning_content_of_its_own__same_bytes() -> None:
    message = {"role": "assistant", "content": "", "reasoning_content": "a", "reasoning": "b"}
    body = json.dumps(completion(choices=[{"index": 0, "message": message, "finish_reason": "stop"}])).encode()
    assert adapter_for("vllm").parse_response(chat_request(), body).body is body


@pytest.mark.parametrize(("fields", "expected"), TOLD)
def test_stream__reasoning_under_any_name__also_under_the_one_that_clients_know(
    fields: dict[str, Any], expected: str | None
) -> None:
    events = run(translator("openrouter"), [sse(chunk({"content": "", **fields}), chunk({}, finish="stop"))])
    first = decoded(events)[0]["choices"][0]["delta"]
    assert first.pop("reasoning_content", None) == expected
    assert first == {"content": "", **fields}
    assert [event.text for event in events] == ["", ""]


def test_stream__reasoning__the_rest_of_the_chunk_keeps_its_bytes() -> None:
    head = b'{"id":"x", "object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{'
    tail = b'"content":"\\u00fc"},"logprobs":null,"finish_reason":null}]}'
    data = head + b'"reasoning":"a\\n\xc3\xbc",' + tail
    (event,) = translator("groq").feed(b"data: " + data + b"\n\n")
    assert event.data == head + b'"reasoning_content":"a\\n\xc3\xbc","reasoning":"a\\n\xc3\xbc",' + tail
    assert event.has_output


@given(reasoning=TEXTS, content=TEXTS, spaced=st.booleans(), ascii_only=st.booleans())
def test_stream__any_reasoning_and_text__nothing_else_changes(
    reasoning: str, content: str, spaced: bool, ascii_only: bool
) -> None:
    sent = chunk({"reasoning": reasoning, "content": content})
    separators = None if spaced else (",", ":")
    line = b"data: " + json.dumps(sent, separators=separators, ensure_ascii=ascii_only).encode() + b"\n\n"
    (event,) = translator("groq").feed(line)
    made = json.loads(event.data)
    assert made["choices"][0]["delta"].pop("reasoning_content", "") == reasoning
    assert made == sent
    assert event.text == content


@pytest.mark.parametrize("reason", ["error", "network_error", "insufficient_system_resource"])
def test_answer__broken_off__a_failure_that_is_billed(reason: str) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hal"}, "finish_reason": reason}
    body = json.dumps(completion(choices=[choice])).encode()
    with pytest.raises(ProviderError, match=reason) as caught:
        adapter_for("deepseek").parse_response(chat_request(), body)
    assert caught.value.kind is FailureKind.UNAVAILABLE
    assert caught.value.usage == Usage(9, 4)


@pytest.mark.parametrize("reason", ["error", "network_error", "insufficient_system_resource"])
def test_stream__broken_off__a_failure_behind_what_was_said(reason: str) -> None:
    stream = translator("zai")
    events = stream.feed(sse(chunk({"content": "Hal"}), chunk({}, finish=reason, usage=USAGE)))
    assert [event.text for event in events] == ["Hal"]
    with pytest.raises(ProviderError, match=reason) as caught:
        stream.closing()
    assert caught.value.kind is FailureKind.UNAVAILABLE
    assert caught.value.usage == Usage(9, 4)


def test_stream__error_after_usage_was_told__billed() -> None:
    stream = translator("perplexity")
    with pytest.raises(ProviderError) as caught:
        run(stream, [sse(chunk({"content": "a"}, usage=USAGE), {"error": {"message": "no", "code": 500}})])
    assert caught.value.usage == Usage(9, 4)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "m", "type": "server_error", "code": None}, FailureKind.UNAVAILABLE),
        ({"message": "m", "type": "invalid_request_error", "code": "context_length_exceeded"}, FailureKind.REJECTED),
        ({"message": "m", "type": "tokens", "code": "rate_limit_exceeded"}, FailureKind.RATE_LIMITED),
        ({"message": "m", "type": "insufficient_quota", "code": "insufficient_quota"}, FailureKind.RATE_LIMITED),
        ({"message": "m", "code": 429}, FailureKind.RATE_LIMITED),
        ({"message": "m", "code": "502"}, FailureKind.UNAVAILABLE),
        ({"message": "m", "status_code": 400, "type": "x"}, FailureKind.REJECTED),
        ({"message": "m", "type": "overloaded_error"}, FailureKind.UNAVAILABLE),
        ({"message": "m", "code": "RateLimitReached"}, FailureKind.RATE_LIMITED),
    ],
)
def test_stream__error_event__of_its_kind(error: dict[str, Any], kind: FailureKind) -> None:
    stream = translator("openrouter")
    with pytest.raises(ProviderError, match="m") as caught:
        run(stream, [sse(chunk({"role": "assistant", "content": ""}), {"error": error})])
    assert caught.value.kind is kind


@pytest.mark.parametrize(
    ("vendor", "ours"),
    [
        ("max_output_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("sensitive", "content_filter"),
        ("refusal", "content_filter"),
        ("function_call", "function_call"),
        ("", "stop"),
        ("abort", "stop"),
    ],
)
def test_finish_reason__of_a_vendor__one_that_clients_know(vendor: str, ours: str) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": vendor}
    answer = adapter_for("zai").parse_response(chat_request(), json.dumps(completion(choices=[choice])).encode())
    assert answer.finish_reason == json.loads(answer.body)["choices"][0]["finish_reason"] == ours


def test_answer__of_perplexity__search_results_and_citations_stay() -> None:
    extras: dict[str, Any] = {
        "citations": ["https://a.test"],
        "search_results": [{"title": "t", "url": "https://a.test"}],
    }
    usage = {**USAGE, "search_context_size": "low", "cost": {"total_cost": 0.1}}
    choice = {**completion()["choices"][0], "delta": {"role": "assistant", "content": ""}}
    body = json.dumps(completion(choices=[choice], usage=usage, **extras)).encode()
    assert adapter_for("perplexity").parse_response(chat_request(), body).body is body
    events = run(
        translator("perplexity"), [sse(chunk({"content": "a"}, usage=usage, **extras), chunk({}, finish="stop"))]
    )
    assert {name: decoded(events)[0][name] for name in extras} == extras


def test_stream__annotations__stay() -> None:
    cited = {"type": "url_citation", "url_citation": {"url": "https://a.test", "start_index": 0, "end_index": 1}}
    body = sse(chunk({"content": "a", "annotations": [cited]}), chunk({}, finish="stop"))
    (made,) = decoded(run(translator("openrouter"), [body]))[0]["choices"][0]["delta"]["annotations"]
    assert made["url_citation"] == cited["url_citation"]
