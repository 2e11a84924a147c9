"""Tests that reasoning is requested, reaches the client, and goes back unchanged to the vendor that signed it alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from integrations.providers.errors import UnsupportedParameterError
from tests.fakes.dialects.story import Call, Story
from tests.integrations.adapters.assembled import as_the_sdk_does, assembled, with_details_appended
from tests.integrations.adapters.subject import USER, WEATHER, Subject, is_named, refusal_or_request
from tests.tables.cases import tabled

SIGNATURE = "RXVyZWthISBzaWduZWQgYnkgdGhlIHZlbmRvcg=="
THOUGHTS = "The user greets me,\nso I greet “back”."
CALL = Call("callAAA01", "get_weather", {"city": "Oslo"})
FOREIGN = "Zm9yZWlnbiBzaWduYXR1cmUgY2FuYXJ5"


Reader = Callable[..., dict[str, Any]]


def merged(subject: Subject, story: Story, **fields: Any) -> dict[str, Any]:
    message: dict[str, Any] = assembled(subject.streamed(story, **fields).chunks)["message"]
    return message


def appended(subject: Subject, story: Story, **fields: Any) -> dict[str, Any]:
    return with_details_appended(subject.streamed(story, **fields).chunks)


def accumulated(subject: Subject, story: Story, **fields: Any) -> dict[str, Any]:
    return as_the_sdk_does(subject.streamed(story, **fields).chunks)


# Clients keep a streamed answer in one of three ways, and the message that they send back has to be valid in each.
READERS = (Subject.message, merged, appended, accumulated)


@tabled
def test_reasoning__requested__a_request_or_a_refusal(subject: Subject, parameters: dict[str, Any]) -> None:
    subject = subject.that_takes(parameters)
    result = refusal_or_request(subject, **parameters)
    if isinstance(result, UnsupportedParameterError):
        assert result.parameter in parameters
        return
    request = subject.read(result)
    assert request.turns == (("user", USER["content"]),)
    limit = parameters.get("max_tokens")
    assert limit is None or request.max_tokens == limit or is_named("max_tokens", result)


@pytest.mark.parametrize(
    "parameters", [{"reasoning_effort": "tomorrows"}, {"thinking": {"type": "tomorrows"}}], ids=str
)
def test_reasoning__requested_by_an_unknown_word__passed_on_or_refused_by_name(
    subject: Subject, parameters: dict[str, Any]
) -> None:
    result = refusal_or_request(subject, **parameters)
    if isinstance(result, UnsupportedParameterError):
        assert result.parameter in parameters
        assert "'tomorrows'" in result.message
        return
    assert b'"tomorrows"' in result.body


@pytest.mark.parametrize("read", READERS)
def test_reasoning__in_an_answer__apart_from_the_text(thinking: Subject, read: Reader) -> None:
    message = read(thinking, Story(text="Hello!", reasoning=THOUGHTS))
    assert message["content"] == "Hello!"
    assert message["reasoning_content"] == THOUGHTS


def test_reasoning__streamed__is_output_but_no_text(thinking: Subject) -> None:
    outcome = thinking.streamed(Story(text="Hello!", reasoning=THOUGHTS))
    thought = [
        event for event in outcome.events if json.loads(event.data)["choices"][0]["delta"].get("reasoning_content")
    ]
    assert thought
    assert all(event.has_output and not event.text for event in thought)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("calls", [(), (CALL,)], ids=["text", "call"])
def test_reasoning__signed_and_sent_back__the_same_signature(
    signing: Subject, read: Reader, calls: tuple[Call, ...]
) -> None:
    text = "" if calls else "Hello!"
    story = Story(
        text=text, reasoning=THOUGHTS, signature=SIGNATURE, calls=calls, finish="tool_calls" if calls else "stop"
    )
    message = read(signing, story, tools=[WEATHER])
    answers = [
        {"role": "tool", "tool_call_id": call["id"], "content": "18 degrees"} for call in message.get("tool_calls", ())
    ]
    more = answers or [{"role": "user", "content": "Go on."}]
    request = signing.ask(messages=[USER, message, *more], tools=[WEATHER])
    assert request.signatures == (SIGNATURE,)
    # The request is repeated with the same history and one turn more, which shows that nothing was used up.
    later = [USER, message, *more, {"role": "assistant", "content": "Fine."}, {"role": "user", "content": "More."}]
    assert signing.ask(messages=later, tools=[WEATHER]).signatures == (SIGNATURE,)


def test_reasoning__signed_by_another_vendor__stays_here(subject: Subject) -> None:
    """The entries come from another vendor's adapter, as on a failover. A router passes them to the vendor behind
    it."""
    details = [
        {"type": "reasoning.text", "text": "…", "signature": FOREIGN, "format": "another-vendor-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": FOREIGN, "format": "another-vendor-v1", "index": 1},
    ]
    message = {"role": "assistant", "content": "Hello!", "reasoning_content": "…", "reasoning_details": details}
    upstream = subject.build(messages=[USER, message, USER], crosses_vendor=True)
    assert subject.fake.can.routes or FOREIGN.encode() not in upstream.body
    assert ("assistant", "Hello!") in subject.read(upstream).turns
    assert not upstream.warnings


def test_reasoning__unsigned_history__still_a_request(subject: Subject) -> None:
    message = {"role": "assistant", "content": "Hello!", "reasoning_content": "I greet."}
    assert ("assistant", "Hello!") in subject.ask(messages=[USER, message, USER]).turns
