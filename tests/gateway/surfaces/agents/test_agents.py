"""Thirty turns of each coding agent through the gateway, at the vendor of its protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest

from tests.fakes.scripted import raw
from tests.gateway.conftest import Routed
from tests.gateway.surfaces.agents import claude_code, codex
from tests.gateway.surfaces.agents.turns import SESSION, TURNS, Turn
from tests.gateway.surfaces.messages.clients import read_stream
from tests.gateway.surfaces.responses.chunks import events_of, read_by_the_sdk

EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
AGENTS = [
    pytest.param("anthropic", claude_code.turns, id="claude-code"),
    pytest.param("openai", codex.turns, id="codex"),
]
Turns = Callable[[], Iterator[Turn]]


@pytest.mark.parametrize(("provider", "turns"), AGENTS)
def test_turns__at_the_agents_own_vendor__pass_byte_by_byte_at_the_vendors_cost(
    routed: Routed, provider: str, turns: Turns
) -> None:
    recorded = list(turns())
    gateway, scripts = routed(**{provider: [raw(200, turn.answer, EVENTS) for turn in recorded]})
    key = {"authorization": f"Bearer {gateway.key}"}

    answers = [gateway.client.post(turn.path, content=turn.body, headers={**turn.headers, **key}) for turn in recorded]

    assert len(answers) == TURNS
    assert [sent.body for sent in scripts[provider].received] == [turn.body for turn in recorded]
    assert [made.content for made in answers] == [turn.answer for turn in recorded]
    for made, turn in zip(answers, recorded, strict=True):
        record = gateway.record(made)
        assert (record.is_native, record.session_id, record.tokens_estimated) == (True, SESSION, False)
        counts = (record.prompt_tokens, record.cache_read_tokens, record.cache_write_tokens, record.completion_tokens)
        assert counts == (turn.prompt, turn.read, turn.written, turn.output)
        assert Decimal(record.cost_usd) == turn.cost


def test_turns__of_claude_code__announce_its_beta_features_to_the_vendor(routed: Routed) -> None:
    turn = next(claude_code.turns())
    gateway, scripts = routed(anthropic=[raw(200, turn.answer, EVENTS)])

    gateway.client.post(turn.path, content=turn.body, headers={**turn.headers, "x-api-key": gateway.key})

    (sent,) = scripts["anthropic"].received
    names = ("anthropic-beta", "anthropic-version")
    assert [sent.headers[name] for name in names] == [turn.headers[name] for name in names]
    assert gateway.key not in str(sent.headers)


def test_answers__of_the_turns__are_those_that_the_vendors_sdks_read() -> None:
    for turn in claude_code.turns():
        message = read_stream(turn.answer)
        assert message.usage.cache_read_input_tokens == turn.read
        assert message.content[0].type in ("thinking", "redacted_thinking")
    for turn in codex.turns():
        response = read_by_the_sdk(events_of(turn.answer))
        assert response.usage is not None
        assert (response.usage.input_tokens, response.usage.output_tokens) == (turn.prompt, turn.output)
        assert len(json.loads(turn.body)["input"]) >= 1
