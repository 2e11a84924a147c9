"""Tests messages and the addresses that they are sent to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integrations.adapters.subject import USER, Subject


@pytest.mark.parametrize("stream", [False, True])
def test_request__plain__provider_reads_model_text_and_mode(subject: Subject, stream: bool) -> None:
    upstream = subject.build(stream=stream)
    request = subject.read(upstream)
    assert (request.model, request.stream) == (subject.model, stream)
    assert request.turns == (("user", USER["content"]),)
    assert request.system == ""
    assert not upstream.warnings
    assert upstream.method == "POST"
    assert all(name == name.lower() for name in upstream.headers)


def test_request__system_and_developer__instructions_in_order(subject: Subject) -> None:
    request = subject.ask(
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": [{"type": "text", "text": "Answer in verse."}]},
            USER,
        ]
    )
    assert 0 <= request.system.index("Be brief.") < request.system.index("Answer in verse.")
    assert request.turns == (("user", USER["content"]),)


def test_request__multi_turn__turns_in_order(subject: Subject) -> None:
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": [{"type": "text", "text": "three"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "four"}]},
        {"role": "user", "content": "five"},
    ]
    assert subject.ask(messages=messages).turns == (
        ("user", "one"),
        ("assistant", "two"),
        ("user", "three"),
        ("assistant", "four"),
        ("user", "five"),
    )


def test_request__neighbours_of_one_role__every_text_arrives_in_order(subject: Subject) -> None:
    request = subject.ask(messages=[{"role": "user", "content": "first"}, {"role": "user", "content": "second"}])
    text = "".join(text for _, text in request.turns)
    assert {role for role, _ in request.turns} == {"user"}
    assert 0 <= text.index("first") < text.index("second")


def test_request__unicode__survives(subject: Subject) -> None:
    text = '日本 👩‍🚀 \u2028 \\u0041 "quoted" \t</s>'
    assert subject.ask(messages=[{"role": "user", "content": text}]).turns == (("user", text),)


def test_request__fields_of_the_gateway__never_leave_it(subject: Subject) -> None:
    own: dict[str, Any] = {
        "models": ["other/model-canary"],
        "provider": {"order": ["canary-order"]},
        "prompt_config": "canary-config",
        "prompt_variables": {"name": "canary-variable"},
    }
    upstream = subject.build(**own)
    plain = subject.build()
    assert json.loads(upstream.body) == json.loads(plain.body)
    assert upstream.warnings == plain.warnings


@pytest.mark.parametrize("stream", [False, True])
def test_request__stream_options__are_no_loss(subject: Subject, stream: bool) -> None:
    """The stream options concern the transport of usage, which the gateway decides, so they need no warning and no
    refusal."""
    upstream = subject.build(stream=stream, stream_options={"include_usage": False} if stream else ...)
    assert not upstream.warnings
    assert subject.read(upstream).stream is stream


def test_request__cache_markers__never_change_what_is_read(subject: Subject) -> None:
    marker = {"cache_control": {"type": "ephemeral"}}
    request = subject.ask(
        messages=[
            {"role": "system", "content": [{"type": "text", "text": "Be brief.", **marker}]},
            {"role": "user", "content": [{"type": "text", "text": "one", **marker}]},
        ]
    )
    assert request.system == "Be brief."
    assert request.turns == (("user", "one"),)


def test_request__twice__the_same_bytes(subject: Subject) -> None:
    """The request holds nothing random, so that a retry sends the same request."""
    assert subject.build(stream=True).body == subject.build(stream=True).body
