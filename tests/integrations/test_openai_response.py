from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.base import ParsedResponse
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage
from integrations.registry import adapter_for
from tests.integrations.exchanges import chat_request, completion


def parsed(answer: Any, provider: str = "openai") -> ParsedResponse:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return adapter_for(provider).parse_response(chat_request(), body)


def test_parse_response__conforming__same_bytes() -> None:
    body = json.dumps(completion(vendor={"kept": True}), indent=1).encode()
    answer = parsed(body)
    assert answer.body is body
    assert (answer.model, answer.finish_reason) == ("gpt-4o-2024-08-06", "stop")
    assert answer.usage == Usage(prompt_tokens=9, completion_tokens=4)


def test_parse_response__fields_missing__filled_in_and_the_rest_kept() -> None:
    answer = completion(object="chat.completion.done", created=1700000000.5, vendor=1)
    del answer["id"], answer["model"], answer["usage"]["total_tokens"]
    body = json.loads(parsed(answer).body)
    assert body["object"] == "chat.completion"
    assert body["created"] == 1700000000
    assert body["id"].startswith("chatcmpl-")
    assert body["model"] == "gpt-4o"
    assert body["usage"]["total_tokens"] == 13
    assert body["vendor"] == 1


def test_parse_response__tool_call_with_odd_finish_and_object_arguments__put_right() -> None:
    call = {"function": {"name": "weather", "arguments": {"city": "Köln"}}}
    choice = {"message": {"tool_calls": [call]}, "finish_reason": "stop"}
    answer = parsed(completion(choices=[choice]))
    translated = json.loads(answer.body)["choices"][0]
    assert (translated["index"], translated["finish_reason"], answer.finish_reason) == (
        0,
        "tool_calls",
        "tool_calls",
    )
    assert translated["message"]["role"] == "assistant"
    assert translated["message"]["content"] is None
    tool_call = translated["message"]["tool_calls"][0]
    assert json.loads(tool_call["function"]["arguments"]) == {"city": "Köln"}
    assert tool_call["id"].startswith("call_")
    assert tool_call["type"] == "function"


@pytest.mark.parametrize("given", ["", "call_0", None])
def test_parse_response__calls_without_an_id_of_their_own__distinct_in_every_answer(given: str | None) -> None:
    call = {"id": given, "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call, call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    answers = [json.loads(parsed(completion(choices=[choice], id=name)).body) for name in ("a", "b", "a")]
    ids = [[one["id"] for one in answer["choices"][0]["message"]["tool_calls"]] for answer in answers]
    assert all(ids[0])
    assert len(set(ids[0])) == 2
    assert ids[0] == ids[2]
    assert ids[0][1] != ids[1][1]


@pytest.mark.parametrize(
    ("vendor", "ours"), [("eos", "stop"), ("model_length", "length"), ("SAFETY", "content_filter"), ("odd", "stop")]
)
def test_parse_response__vendors_finish_reason__in_our_words(vendor: str, ours: str) -> None:
    choice = {**completion()["choices"][0], "finish_reason": vendor}
    assert parsed(completion(choices=[choice])).finish_reason == ours


def test_parse_response__content_parts__text_and_thinking_apart() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "yes"},
    ]
    choice = {"index": 0, "message": {"role": "assistant", "content": parts}, "finish_reason": "stop"}
    message = json.loads(parsed(completion(choices=[choice]), "openai_compatible").body)["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "yes", "reasoning_content": "hm"}


def test_parse_response__no_usage__none_for_the_caller_to_estimate() -> None:
    assert parsed(completion(usage=None)).usage is None


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'"text"', b"{}", b'{"choices":[]}', b'{"choices":[{}]}', b'{"choices":["a"]}', b"\xff"],
)
def test_parse_response__not_an_answer__unusable(body: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        parsed(body)
    assert caught.value.kind is FailureKind.UNUSABLE
    assert caught.value.provider == "openai"


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        ({"error": {"message": "busy", "code": 429}}, FailureKind.RATE_LIMITED, "busy"),
        ({"error": {"message": "too long", "code": 400}, "choices": []}, FailureKind.REJECTED, "too long"),
        ({"error": "overloaded"}, FailureKind.UNAVAILABLE, "overloaded"),
        ({"object": "error", "message": "gone", "code": 503}, FailureKind.UNAVAILABLE, "gone"),
        ({"choices": [{"error": {"message": "half", "code": 502}}]}, FailureKind.UNAVAILABLE, "half"),
    ],
)
def test_parse_response__error_under_200__raised_as_what_it_is(answer: Any, kind: FailureKind, message: str) -> None:
    with pytest.raises(ProviderError, match=message) as caught:
        parsed(answer)
    assert caught.value.kind is kind
