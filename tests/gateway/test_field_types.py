"""Fields of wrong types and values outside an enumeration are refused by name; unknown fields pass through."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.gateway.service import Gateway
from tests.gateway.wire import assert_error, body
from tests.tables.cases import stored

WRONG: list[tuple[str, Any]] = stored(__file__, "WRONG")

WRONG_INSIDE: list[tuple[str, dict[str, Any]]] = stored(__file__, "WRONG_INSIDE")

MISSING: list[tuple[str, dict[str, Any]]] = [
    ("model", {"model": ...}),
    ("messages", {"messages": ...}),
    ("role", {"messages": [{"content": "hi"}]}),
    ("content", {"messages": [{"role": "user"}]}),
    ("type", {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}),
    ("text", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
    ("image_url", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
    ("document_url", {"messages": [{"role": "user", "content": [{"type": "document_url"}]}]}),
    ("tool_call_id", {"messages": [{"role": "tool", "content": "result"}]}),
]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=[f"{field}={value!r}" for field, value in WRONG])
def test_field__wrong_type_or_value__is_refused_by_name(gateway: Gateway, field: str, value: Any) -> None:
    response = gateway.post(body(**{field: value}))

    assert_error(response, 400, "invalid_value", type="invalid_request_error", naming=field)


@pytest.mark.parametrize(("field", "fields"), WRONG_INSIDE, ids=[json.dumps(fields) for _, fields in WRONG_INSIDE])
def test_inner_field__wrong_type_or_value__is_refused_by_name(
    gateway: Gateway, field: str, fields: dict[str, Any]
) -> None:
    response = gateway.post(body(**fields))

    assert_error(response, 400, "invalid_value", naming=field)


@pytest.mark.parametrize(("field", "fields"), MISSING, ids=[str(fields) for _, fields in MISSING])
def test_required_field__missing__is_refused_by_name(gateway: Gateway, field: str, fields: dict[str, Any]) -> None:
    response = gateway.post(body(**fields))

    assert_error(response, 400, "missing_field", type="invalid_request_error", naming=field)


@pytest.mark.parametrize("field", ["model", "messages"])
def test_required_field__null__is_refused_by_name(gateway: Gateway, field: str) -> None:
    response = gateway.post(body(**{field: None}))

    assert_error(response, 400, "invalid_value", naming=field)


def test_unknown_fields__of_any_type__reach_the_provider_as_sent(gateway: Gateway) -> None:
    unknown = {"logit_bias": {"50256": -100}, "x_custom": [1, 2.5, None, {"a": "ü"}], "store": False, "große": "ß"}

    response = gateway.post(body(**unknown, metadata={"k": "v"}))

    assert response.status_code == 200
    sent = json.loads(gateway.upstream.received[-1].body)
    assert {name: sent[name] for name in unknown} == unknown
    assert sent["metadata"] == {"k": "v"}


@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh", "max", "of tomorrow"])
def test_reasoning_effort__of_today_or_tomorrow__reaches_the_provider_as_sent(gateway: Gateway, effort: str) -> None:
    response = gateway.post(body(reasoning_effort=effort))

    assert response.status_code == 200
    assert json.loads(gateway.upstream.received[-1].body)["reasoning_effort"] == effort


def test_thinking__type_of_tomorrow__is_refused_by_name_where_it_has_to_be_translated(gateway: Gateway) -> None:
    response = gateway.post(body(thinking={"type": "tomorrows"}))

    assert_error(response, 400, "unsupported_parameter", naming="thinking")


def test_request__untouched_fields__reach_the_provider_byte_for_byte(gateway: Gateway) -> None:
    raw = (
        b'{ "model":"openai/gpt-4o" ,\n "messages":[ {"role":"user","content":"\\u00e9\\/ \xc3\xa9", "extra":1.50} ],'
        b'"temperature":1.0e0,"big":123456789012345678901234567890}'
    )

    response = gateway.post(raw)

    assert response.status_code == 200
    sent = gateway.upstream.received[-1].body
    assert b'[ {"role":"user","content":"\\u00e9\\/ \xc3\xa9", "extra":1.50} ]' in sent
    assert b"1.0e0" in sent
    assert b"123456789012345678901234567890" in sent
    assert json.loads(sent)["model"] == "gpt-4o"


def test_gateway_fields__never_reach_the_provider(gateway: Gateway) -> None:
    response = gateway.post(body(models=["openai/gpt-4o"], provider={"order": ["openai"], "allow_fallbacks": True}))

    assert response.status_code == 200
    assert set(json.loads(gateway.upstream.received[-1].body)) == {"model", "messages"}
