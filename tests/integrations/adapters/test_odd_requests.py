"""Tests that an adapter turns every request that passes the gateway's own checks into one that the provider takes, or
refuses it, and never fails in another way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from core.errors import ValidationError
from gateway.protocol.wire import decode_request
from integrations.providers.base import ChatRequest
from integrations.providers.errors import FailureKind, ProviderError, UnsupportedParameterError
from tests.fakes.dialects.rules.table import Refused
from tests.integrations.adapters.hostile import ODD_VALUES, places, swapped
from tests.integrations.adapters.subject import WEATHER, Subject, data_url
from tests.night import examples
from tests.tables.cases import stored

quick = settings(
    max_examples=examples(10, 40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

RICH: dict[str, Any] = stored(__file__, "RICH")


def built(subject: Subject, fields: dict[str, Any], *, crosses_vendor: bool = False) -> None:
    """Fails unless the adapter makes a request or raises ProviderError."""
    body = json.dumps(fields).encode()
    request = ChatRequest(subject.model, False, body, fields, crosses_vendor=crosses_vendor)
    try:
        needs = subject.adapter.needs(request, subject.credentials)
        upstream_request = subject.adapter.build_request(
            subject.request(crosses_vendor=crosses_vendor, **fields) if needs.media else request, subject.credentials
        )
    except ProviderError as error:
        assert error.kind is FailureKind.REJECTED
        assert error.message
        return
    json.loads(upstream_request.body)


@quick
@given(data=st.data())
def test_request__with_an_odd_value__built_or_refused(subject: Subject, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([path for path in places(RICH) if path]))
    odd = data.draw(st.sampled_from(ODD_VALUES))
    fields = swapped(RICH, path, odd, drop=data.draw(st.booleans()))
    try:
        decode_request(json.dumps(fields).encode())
    except ValidationError:
        assume(False)
    built(subject, fields, crosses_vendor=data.draw(st.booleans()))


TEXTS = st.sampled_from(["one", " two ", "three\nlines", "", "  ", "fünf 👋", "x" * 500])
IDS = st.sampled_from(["call_1", "callAAA01", "toolu_01A:b/c", "x" * 70, "ünïcode id", "0", "call_1_2"])
ARGUMENTS = st.sampled_from(["{}", "", '{"city": "Oslo"}', '{"city": {"deep": [1, null]}}'])
PARTS = st.one_of(
    TEXTS.map(lambda text: {"type": "text", "text": text}),
    st.just({"type": "image_url", "image_url": {"url": data_url()}}),
)


def message(role: str, content: st.SearchStrategy[Any], **fields: Any) -> st.SearchStrategy[list[dict[str, Any]]]:
    return content.map(lambda given: [{"role": role, "content": given, **fields}])


@st.composite
def exchanges(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draws calls and their results, in any order."""
    ids = draw(st.lists(IDS, min_size=1, max_size=3, unique=True))
    calls = [
        {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": draw(ARGUMENTS)}} for id in ids
    ]
    results = [
        {"role": "tool", "tool_call_id": id, "content": draw(st.one_of(TEXTS, TEXTS.map(as_part)))}
        for id in draw(st.permutations(ids))
    ]
    content = draw(st.one_of(st.none(), TEXTS))
    return [{"role": "assistant", "content": content, "tool_calls": calls}, *results]


def as_part(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


STEPS = st.one_of(
    message("system", TEXTS),
    message("developer", TEXTS.map(as_part)),
    message("user", TEXTS),
    message("user", st.lists(PARTS, max_size=3)),
    message("assistant", st.one_of(TEXTS, st.none())),
    message("assistant", TEXTS, reasoning_content="I think."),
    exchanges(),
)


@quick
@given(steps=st.lists(STEPS, max_size=6), stream=st.booleans(), crosses_vendor=st.booleans())
def test_conversation__of_any_order__one_the_provider_takes_with_every_text_in_it(
    subject: Subject, steps: list[list[dict[str, Any]]], stream: bool, crosses_vendor: bool
) -> None:
    messages = [*(message for step in steps for message in step), {"role": "user", "content": "the end"}]
    tools = [WEATHER] if subject.fake.can.tools else ...
    try:
        upstream = subject.build(messages=messages, tools=tools, stream=stream, crosses_vendor=crosses_vendor)
    except UnsupportedParameterError as refused:
        assert not subject.fake.can.images or not subject.fake.can.tools, refused.message
        return
    try:
        request = subject.read(upstream)
    except Refused:
        # A direct request in the vendor's own dialect goes out as its client wrote it, also where it has faults.
        assert not crosses_vendor
        sent = json.loads(upstream.body)["messages"]
        assert [one["content"] for one in sent] == [one["content"] for one in messages]
        return
    texts = "\n".join(text for _, text in request.turns)
    position = 0
    for text in texts_of(messages, "user", "assistant"):
        position = texts.index(text, position) + len(text)
    for text in texts_of(messages, "system", "developer"):
        assert text in request.system or text in texts
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    assert [dict(call.arguments) for call in request.calls] == [
        json.loads(call["function"]["arguments"] or "{}") for call in calls
    ]
    assert len(request.results) == len(calls)
    if all(call.id for call in request.calls):
        assert sorted(name for name, _ in request.results) in (
            sorted(call.id for call in request.calls),
            sorted(call.name for call in request.calls),
        )


def texts_of(messages: list[dict[str, Any]], *roles: str) -> list[str]:
    """Returns every non-blank text, without the space around it, which some vendors refuse."""
    contents = [message["content"] for message in messages if message["role"] in roles]
    parts = [
        part for content in contents for part in (content if isinstance(content, list) else as_part(content or ""))
    ]
    return [part["text"].strip() for part in parts if part["type"] == "text" and part["text"].strip()]


@pytest.mark.parametrize("role", ["system", "assistant"])
def test_conversation__of_one_message_that_is_not_the_users__reaches_the_provider(subject: Subject, role: str) -> None:
    """The provider may refuse such a conversation with its own message (Mistral), but the gateway does not."""
    upstream = subject.build(messages=[{"role": role, "content": "Say hello."}])
    assert b"Say hello." in upstream.body
