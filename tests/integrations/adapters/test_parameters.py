"""Tests that every field is translated, or dropped with a warning, or refused, so that none is lost silently."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.base import UpstreamRequest
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.adapters.subject import WEATHER, Subject, is_named, refusal_or_request
from tests.tables.cases import stored

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True}}

# The loss of a parameter in this list changes an answer in degree: it is translated, or named in a warning, or refused.
DEGREES: dict[str, dict[str, Any]] = stored(__file__, "DEGREES")
# A parameter in this list decides on the kind of the answer, so it is translated or refused, never dropped.
KINDS: dict[str, dict[str, Any]] = {
    "n": {"n": 2},
    "modalities": {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}},
    "tools": {"tools": [WEATHER]},
    "response_format": {"response_format": JSON_SCHEMA},
}


def differs(subject: Subject, upstream: UpstreamRequest) -> bool:
    return bool(json.loads(upstream.body) != json.loads(subject.build().body))


@pytest.mark.parametrize("name", DEGREES)
def test_parameter__of_degree__reaches_the_provider_or_is_named(subject: Subject, name: str) -> None:
    subject = subject.that_takes(DEGREES[name])
    result = refusal_or_request(subject, **DEGREES[name])
    if isinstance(result, UnsupportedParameterError):
        assert result.parameter in DEGREES[name]
        return
    subject.read(result)
    assert is_named(name, result) or differs(subject, result)


@pytest.mark.parametrize("name", KINDS)
def test_parameter__of_kind__reaches_the_provider_or_is_refused(subject: Subject, name: str) -> None:
    result = refusal_or_request(subject, **KINDS[name])
    if isinstance(result, UnsupportedParameterError):
        assert result.parameter in KINDS[name]
        assert result.provider in ("", subject.provider)
        return
    subject.read(result)
    assert differs(subject, result)
    assert not is_named(name, result)


@pytest.mark.parametrize("name", [*DEGREES, *KINDS])
def test_parameter__null__is_as_if_absent(subject: Subject, name: str) -> None:
    fields: dict[str, Any] = {name: None}
    upstream = subject.build(**fields)
    assert not is_named(name, upstream)
    assert subject.read(upstream).turns


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_limit__under_either_name__the_providers_limit(subject: Subject, name: str) -> None:
    fields: dict[str, Any] = {name: 77}
    assert subject.ask(**fields).max_tokens == 77


@pytest.mark.parametrize(("name", "value"), [("temperature", 0.3), ("top_p", 0.8)])
def test_sampling__temperature_and_top_p__as_sent_or_named(subject: Subject, name: str, value: float) -> None:
    """Some models have no sampling parameters any more, and a warning then names the parameter."""
    fields: dict[str, Any] = {name: value}
    request = subject.build(**fields)
    assert getattr(subject.read(request), name) == pytest.approx(value) or is_named(name, request)


@pytest.mark.parametrize(("stop", "expected"), [("END", ("END",)), (["END", "STOP"], ("END", "STOP"))])
def test_stop__text_or_list__sequences(subject: Subject, stop: Any, expected: tuple[str, ...]) -> None:
    request = subject.build(stop=stop)
    assert subject.read(request).stop == expected or is_named("stop", request)


def test_response_format__json_schema__the_schema_arrives_or_is_refused(subject: Subject) -> None:
    if subject.fake.can.schema:
        assert subject.ask(response_format=JSON_SCHEMA).schema == SCHEMA
    else:
        with pytest.raises(UnsupportedParameterError, match="response_format"):
            subject.build(response_format=JSON_SCHEMA)


def test_response_format__json_object__translated_or_refused(subject: Subject) -> None:
    result = refusal_or_request(subject, response_format={"type": "json_object"})
    if isinstance(result, UnsupportedParameterError):
        assert result.parameter == "response_format"
    else:
        assert differs(subject, result) or is_named("response_format", result)


def test_response_format__text__needs_nothing(subject: Subject) -> None:
    request = subject.build(response_format={"type": "text"})
    assert not request.warnings
    assert subject.read(request).schema is None
