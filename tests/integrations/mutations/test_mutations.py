"""Tests that the client gets an answer of OpenAI's form, or a failure that can be retried, from any answer of a
provider.

A stream has one id and one second of creation; usage is present as three numbers; the finish reason is one that clients
know; and an empty answer with an unknown reason is no success.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gateway.pipeline.uncounted import with_usage
from integrations.providers.base import StreamTranslator
from integrations.providers.errors import ProviderError
from integrations.providers.usage import Usage
from integrations.registry import providers
from tests.integrations.adapters.assembled import assembled
from tests.integrations.adapters.subject import Subject, pieces, subject_of
from tests.integrations.mutations.changes import CHANGES, UNKNOWN_REASON, Change
from tests.integrations.mutations.wire import Event, Seed, seeds_of, written
from tests.night import examples

REASONS = {"stop", "length", "tool_calls", "content_filter", "function_call"}
# The phase of shrinking is left out, since a number chooses the change, and a smaller one is no simpler change.
few = settings(max_examples=examples(8, 25), phases=[Phase.explicit, Phase.reuse, Phase.generate])
CHANGED = st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3, unique=True)
NUMBERS = st.integers(0, 2**32)


def changed(seed: Seed, changes: list[Change], number: int) -> list[Event]:
    random = Random(number)
    events = seed.copy()
    for change in changes:
        events = change(events, seed.form, random)
    return events


def assert_counted(usage: Any) -> None:
    counts = [usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")]
    assert all(type(count) is int and count >= 0 for count in counts), usage


def has_output(message: dict[str, Any]) -> bool:
    return any(value for name, value in message.items() if name != "role")


def assert_no_empty_success(message: dict[str, Any], reason: str, events: list[Event]) -> None:
    if UNKNOWN_REASON in json.dumps([event.data for event in events]):
        assert has_output(message) or reason == "content_filter", "an empty answer for an unknown reason"


@pytest.mark.parametrize("provider", providers())
@few
@given(data=st.data(), changes=CHANGED, number=NUMBERS)
def test_whole_answer__changed__is_an_answer_or_a_failure(
    provider: str, data: st.DataObject, changes: list[Change], number: int
) -> None:
    subject = subject_of(provider)
    seed = data.draw(st.sampled_from(seeds_of(provider, stream=False)))
    events = changed(seed, changes, number)
    assert_whole(subject, seed.form, events)


@pytest.mark.parametrize("provider", providers())
@few
@given(data=st.data(), changes=CHANGED, number=NUMBERS, cuts=st.lists(st.integers(0, 2**16), max_size=6))
def test_stream__changed_and_cut_anywhere__is_one_answer_or_a_failure(
    provider: str, data: st.DataObject, changes: list[Change], number: int, cuts: list[int]
) -> None:
    subject = subject_of(provider)
    seed = data.draw(st.sampled_from(seeds_of(provider, stream=True)))
    events = changed(seed, changes, number)
    assert_stream(subject, seed.form, events, cuts)


def assert_whole(subject: Subject, form: str, events: list[Event]) -> None:
    try:
        parsed = subject.adapter.parse_response(subject.request(), written(form, events))
        # The pipeline estimates the usage of an answer without counts.
        answer = json.loads((parsed if parsed.usage else with_usage(parsed, 25, None)).body)
    except ProviderError:
        return
    assert isinstance(answer["id"], str) and answer["id"]
    assert type(answer["created"]) is int and answer["created"] > 0
    assert answer["object"] == "chat.completion"
    assert_counted(answer["usage"])
    choice = answer["choices"][0]
    assert choice["finish_reason"] in REASONS
    assert choice["message"]["role"] == "assistant"
    assert_no_empty_success(choice["message"], choice["finish_reason"], events)


def assert_stream(subject: Subject, form: str, events: list[Event], cuts: list[int]) -> None:
    translator = subject.adapter.stream(subject.request(stream=True))
    chunks, failure = translated(subject, translator, written(form, events), cuts)
    assert len({chunk["id"] for chunk in chunks}) <= 1
    assert len({chunk["created"] for chunk in chunks}) <= 1
    for chunk in chunks:
        assert isinstance(chunk["id"], str) and chunk["id"]
        assert type(chunk["created"]) is int and chunk["created"] > 0
        assert chunk["object"] == "chat.completion.chunk"
    if failure is not None:
        return
    assert_counted(chunks[-1]["usage"])
    assert not any(chunk.get("usage") for chunk in chunks[:-1])
    reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]
    assert len(reasons) == len(chunks[-1]["choices"]) and set(reasons) <= REASONS
    whole = assembled(chunks)
    assert_no_empty_success(whole["message"], whole["finish_reason"], events)


def translated(
    subject: Subject, translator: StreamTranslator, body: bytes, cuts: list[int]
) -> tuple[list[dict[str, Any]], ProviderError | None]:
    """Returns the client's chunks and the error that ended them. Usage without counts is estimated, as in the
    pipeline."""
    chunks: list[dict[str, Any]] = []
    try:
        for piece in pieces(body, cuts):
            chunks += [json.loads(event.data) for event in translator.feed(piece)]
        if translator.usage is None:
            translator.usage = Usage(prompt_tokens=1)
        chunks += [json.loads(event.data) for event in translator.closing()]
    except ProviderError as failure:
        return chunks, failure
    return chunks, None
