"""Tests that the whole answers of each provider's fake become the equivalent chat completions."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletion

from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage
from tests.fakes.dialects.story import Call, Finish, Story
from tests.integrations.adapters.subject import Subject

COUNTS = Usage(prompt_tokens=100, completion_tokens=20, cache_read_tokens=60, cache_write_tokens=10, reasoning_tokens=8)


def assert_usage(subject: Subject, usage: dict[str, Any], read: Usage | None) -> None:
    """Asserts the counts: those that a provider does not report are 0, and the totals are exact."""
    assert read is not None
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (100, 20, 120)
    assert (read.prompt_tokens, read.completion_tokens) == (100, 20)
    assert read.cache_read_tokens == (60 if subject.fake.can.cached_usage else 0)
    assert read.cache_write_tokens in (0, 10)
    assert read.reasoning_tokens in (0, 8)
    details = usage.get("prompt_tokens_details") or {}
    assert (details.get("cached_tokens") or 0) == read.cache_read_tokens


def test_answer__text__every_field_of_a_completion(subject: Subject) -> None:
    story = Story(text="Hallo 👋\n“quoted” \\u0041")
    answer = subject.whole(story)
    assert {"id", "object", "created", "model", "choices", "usage"} <= set(answer)
    assert answer["object"] == "chat.completion"
    assert isinstance(answer["id"], str)
    assert answer["id"]
    assert isinstance(answer["created"], int)
    assert answer["model"] in (story.model, subject.model)
    (choice,) = answer["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    assert (choice["message"]["role"], choice["message"]["content"]) == ("assistant", story.text)
    assert not choice["message"].get("tool_calls")
    assert (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]) == (21, 9)


def test_answer__parsed__has_what_the_record_needs(subject: Subject) -> None:
    story = Story(text="Hallo", usage=COUNTS)
    request = subject.request()
    parsed = subject.adapter.parse_response(request, subject.fake.whole(story).body)
    assert parsed.finish_reason == "stop"
    assert parsed.model in (story.model, subject.model)
    assert_usage(subject, subject.whole(story)["usage"], parsed.usage)


def test_answer__with_everything_in_it__valid_for_the_official_types(subject: Subject) -> None:
    """The answer is validated against the SDK's types, which the SDK itself does not do; extra fields are allowed."""
    answer = subject.whole(everything(subject))
    ChatCompletion.model_validate(answer)


def everything(subject: Subject) -> Story:
    """Returns a story with every feature that the dialect has."""
    can = subject.fake.can
    return Story(
        text="Hello there",
        reasoning="I greet." if can.reasoning else "",
        signature="c2lnbmVk" if can.signatures else "",
        calls=(Call("callAAA01", "get_weather", {"city": "Oslo"}),) if can.tools else (),
        finish="tool_calls" if can.tools else "stop",
        usage=COUNTS,
    )


@pytest.mark.parametrize("finish", ["stop", "length", "content_filter"])
def test_answer__finish__in_openais_words(subject: Subject, finish: Finish) -> None:
    choice = subject.whole(Story(text="Once upon", finish=finish))["choices"][0]
    assert choice["finish_reason"] == finish
    assert choice["message"]["content"] == "Once upon"


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_answer__empty__is_an_empty_text(subject: Subject, finish: Finish) -> None:
    choice = subject.whole(Story(text="", finish=finish))["choices"][0]
    assert choice["message"]["content"] == ""
    assert choice["finish_reason"] == finish


@pytest.mark.parametrize(
    "body", [b"", b"<html>502</html>", b"[]", b"null", b'"text"', b"{}", b'{"choices": "no"}', b"\xff\xfe"]
)
def test_answer__that_is_none__unusable(subject: Subject, body: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        subject.adapter.parse_response(subject.request(), body)
    assert caught.value.kind is FailureKind.UNUSABLE
    assert caught.value.provider in ("", subject.provider)


def test_answer__error_body_under_a_200__is_an_error(subject: Subject) -> None:
    body = subject.fake.failure(500, "the backend fell over").body
    with pytest.raises(ProviderError):
        subject.adapter.parse_response(subject.request(), body)


def test_answer__cut_short__unusable(subject: Subject) -> None:
    body = subject.fake.whole(Story(text="a long enough text")).body
    with pytest.raises(ProviderError) as caught:
        subject.adapter.parse_response(subject.request(), body[: len(body) // 2])
    assert caught.value.kind is FailureKind.UNUSABLE
