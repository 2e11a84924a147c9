"""Tests that an adapter reads any data of a provider or raises ProviderError, and never fails in another way."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from integrations.providers.errors import ProviderError
from tests.fakes.dialects.story import Story
from tests.integrations.adapters.hostile import ODD_VALUES, payload_of, places, swapped, with_payload
from tests.integrations.adapters.subject import Subject, pieces
from tests.integrations.adapters.test_answers import everything
from tests.night import examples

quick = settings(
    max_examples=examples(10, 40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def check_chunks(events: list[Any]) -> None:
    for event in events:
        chunk = json.loads(event.data)
        assert chunk["object"] == "chat.completion.chunk"
        for choice in chunk["choices"]:
            assert isinstance(choice["delta"], dict)
            content = choice["delta"].get("content")
            assert content is None or isinstance(content, str)
        assert isinstance(event.text, str)


@quick
@given(data=st.data())
def test_answer__with_an_odd_value__is_read_or_a_provider_error(subject: Subject, data: st.DataObject) -> None:
    answer = json.loads(subject.fake.whole(everything(subject)).body)
    path = data.draw(st.sampled_from(list(places(answer))))
    drop = bool(path) and data.draw(st.booleans())
    odd = swapped(answer, path, data.draw(st.sampled_from(ODD_VALUES)), drop=drop)
    try:
        parsed = subject.adapter.parse_response(subject.request(), json.dumps(odd).encode())
    except ProviderError as error:
        assert error.message
        return
    body = json.loads(parsed.body)
    assert isinstance(body["choices"], list)
    assert isinstance(parsed.finish_reason, str)
    assert parsed.usage is None or min(parsed.usage.prompt_tokens, parsed.usage.completion_tokens) >= 0


@quick
@given(data=st.data())
def test_stream__with_an_odd_value__is_read_or_a_provider_error(subject: Subject, data: st.DataObject) -> None:
    events = list(subject.fake.stream(everything(subject)).events)
    position = data.draw(st.sampled_from([n for n, event in enumerate(events) if payload_of(event) is not None]))
    payload = payload_of(events[position])
    path = data.draw(st.sampled_from(list(places(payload))))
    drop = bool(path) and data.draw(st.booleans())
    odd = swapped(payload, path, data.draw(st.sampled_from(ODD_VALUES)), drop=drop)
    events[position] = with_payload(events[position], odd)
    outcome = subject.translate(events)
    check_chunks(outcome.events)
    assert outcome.translator is not None
    usage = outcome.translator.usage
    assert usage is None or min(usage.prompt_tokens, usage.completion_tokens) >= 0


@quick
@given(
    cut=st.integers(0, 1 << 16),
    noise=st.binary(max_size=20),
    length=st.integers(0, 8),
    cuts=st.lists(st.integers(0, 1 << 16), max_size=4),
)
def test_stream__with_bytes_swapped__is_read_or_a_provider_error(
    subject: Subject, cut: int, noise: bytes, length: int, cuts: list[int]
) -> None:
    good = b"".join(subject.fake.stream(everything(subject)).events)
    start = cut % len(good)
    outcome = subject.translate(pieces(good[:start] + noise + good[start + length :], cuts))
    check_chunks(outcome.events)


@quick
@given(order=st.randoms(use_true_random=False), drops=st.integers(0, 3), twice=st.booleans())
def test_stream__with_events_lost_doubled_or_moved__is_read_or_a_provider_error(
    subject: Subject, order: Any, drops: int, twice: bool
) -> None:
    events = list(subject.fake.stream(everything(subject)).events)
    for _ in range(drops):
        events.pop(order.randrange(len(events)))
    if twice:
        events.insert(order.randrange(len(events)), order.choice(events))
    position = order.randrange(len(events))
    events.insert(order.randrange(len(events)), events.pop(position))
    check_chunks(subject.translate(events).events)


@quick
@given(data=st.data(), status=st.sampled_from([400, 404, 429, 500, 529]))
def test_failure__with_an_odd_value__is_classified(subject: Subject, data: st.DataObject, status: int) -> None:
    reply = subject.fake.failure(status, "No", retry_after=3)
    body = json.loads(reply.body)
    path = data.draw(st.sampled_from(list(places(body))))
    odd = swapped(body, path, data.draw(st.sampled_from(ODD_VALUES)))
    error = subject.adapter.classify_failure(status, dict(reply.headers), json.dumps(odd).encode())
    assert error.message
    assert isinstance(error.message, str)
    assert error.status == status


def test_stream__fed_after_its_end__no_failure_and_nothing_lost(subject: Subject) -> None:
    streamed = subject.fake.stream(Story(text="Hello"))
    outcome = subject.translate([*streamed.events, b"", streamed.events[0]])
    assert outcome.error is None
    assert "".join(event.text for event in outcome.events).startswith("Hello")
