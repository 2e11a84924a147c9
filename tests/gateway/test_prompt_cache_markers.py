"""Automatic prompt-cache markers over HTTP: a replayed conversation costs what hand-set markers make it cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import anthropic
import pytest

from tests.fakes.prompt_cache import MAX_BREAKPOINTS, PromptCache
from tests.fakes.scripted import ScriptedServer
from tests.gateway.service import Gateway, GatewayService
from tests.recordings import SHARED_DIR

TURNS = 30
MODEL = "claude-sonnet-5"
# US dollars per 1,000,000 tokens: fresh input, reads and writes of the cache.
INPUT, READ, WRITE = Decimal(2), Decimal("0.2"), Decimal("2.5")
MARK = {"cache_control": {"type": "ephemeral"}}
TOOL = {
    "name": "look_up",
    "description": "Looks a word up in the dictionary of the house. " * 20,
    "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}},
}
OWN_TEXTS = Path(__file__).parents[2] / "gateway" / "demo" / "prompts.jsonl"
Json = dict[str, Any]


def texts() -> list[str]:
    """Returns what users asked: of the shared traffic, or of the demo in a clone without it."""
    shared = SHARED_DIR / "traffic" / "prompts.jsonl"
    lines = (shared if shared.exists() else OWN_TEXTS).read_text().splitlines()
    found = [_text(json.loads(line)) for line in lines]
    return [text for text in found if len(text) > 40] * TURNS


def _text(line: Json) -> str:
    messages = line.get("messages") or [{"role": "user", "content": line.get("prompt") or line.get("text") or ""}]
    return next((m["content"] for m in messages if m["role"] == "user" and isinstance(m["content"], str)), "")


def conversation() -> Iterator[list[Json]]:
    """Yields the messages of each of the turns, as a client sends them."""
    messages: list[Json] = []
    for turn, text in enumerate(texts()[:TURNS]):
        messages = [*messages, {"role": "user", "content": text}]
        yield messages
        messages = [*messages, {"role": "assistant", "content": f"Answer {turn + 1}: {text[:200]}"}]


SYSTEM = " ".join(texts()[TURNS : TURNS + 40])[:8000]


def dollars(cache: PromptCache) -> Decimal:
    """Returns the cost of the prompts; the answers cost the same with and without markers."""
    return sum(
        (one.fresh * INPUT + one.read * READ + one.written * WRITE for one in cache.counts), Decimal(0)
    ) / Decimal(1_000_000)


@pytest.fixture
def play(service: GatewayService, upstream: ScriptedServer) -> Callable[..., tuple[Gateway, PromptCache]]:
    def made(*, markers: bool, provider: str = "anthropic") -> tuple[Gateway, PromptCache]:
        cache, name = PromptCache(), f"cache-{len(upstream.scripts)}"
        upstream.play(name, cache.step)
        gateway = service.new_project(
            base_urls={provider: upstream.base_url(name)}, routing={"prompt_cache_markers": markers}
        )
        return gateway, cache

    return made


Play = Callable[..., tuple[Gateway, PromptCache]]


def chat(gateway: Gateway, messages: list[Json], *, by_hand: bool) -> None:
    function = {"name": TOOL["name"], "description": TOOL["description"], "parameters": TOOL["input_schema"]}
    tool: Json = {"type": "function", "function": function}
    system: Any = SYSTEM
    if by_hand:
        tool |= MARK
        system = [{"type": "text", "text": SYSTEM, **MARK}]
        messages = [*messages[:-1], _marked(messages[-1])]
    content = {"model": MODEL, "messages": [{"role": "system", "content": system}, *messages], "tools": [tool]}
    response = gateway.post({**content, "max_tokens": 100})
    assert response.status_code == 200, response.text


def native(gateway: Gateway, messages: list[Json], *, by_hand: bool) -> None:
    tool, system = TOOL, SYSTEM
    if by_hand:
        tool, messages = {**TOOL, **MARK}, [*messages[:-1], _marked(messages[-1])]
    content = [{"type": "text", "text": system, **(MARK if by_hand else {})}]
    base_url = f"{gateway.service.base_url()}/api/gateway"
    with anthropic.Anthropic(api_key=gateway.key, base_url=base_url, max_retries=0) as client:
        arguments: Json = {"system": content, "messages": messages, "tools": [tool]}
        message = client.messages.create(model=MODEL, max_tokens=100, **arguments)
    assert message.stop_reason == "end_turn"


def _marked(message: Json) -> Json:
    return {**message, "content": [{"type": "text", "text": message["content"], **MARK}]}


@pytest.mark.parametrize("ask", [chat, native])
def test_conversation__automatic_markers__cost_at_most_2_percent_more_than_by_hand(play: Play, ask: Any) -> None:
    costs = {}
    for name, markers, by_hand in (("hand", False, True), ("automatic", True, False), ("none", False, False)):
        gateway, cache = play(markers=markers)
        for messages in conversation():
            ask(gateway, messages, by_hand=by_hand)
        costs[name] = dollars(cache)

    assert costs["automatic"] <= costs["hand"] * Decimal("1.02")
    assert costs["automatic"] < costs["none"] / 2


def test_native_request__automatic_markers__nothing_else_changes(play: Play) -> None:
    gateway, cache = play(markers=True)
    for messages in list(conversation())[:3]:
        native(gateway, messages, by_hand=False)
    body = cache.bodies[-1]

    assert len(_marks(body)) == MAX_BREAKPOINTS
    messages = list(conversation())[2]
    plain = [{"role": m["role"], "content": [{"type": "text", "text": m["content"]}]} for m in messages]
    shown = [{"role": m["role"], "content": _listed(m["content"])} for m in _unmarked(body)["messages"]]
    assert (shown, _unmarked(body)["tools"]) == (plain, [TOOL])


@pytest.mark.parametrize("ask", [chat, native])
def test_request__client_has_markers__none_are_added(play: Play, ask: Any) -> None:
    gateway, cache = play(markers=True)
    for messages in list(conversation())[:2]:
        ask(gateway, messages, by_hand=True)

    assert [len(_marks(body)) for body in cache.bodies] == [3, 3]


@pytest.mark.parametrize("ask", [chat, native])
def test_request__setting_off__no_markers(play: Play, ask: Any) -> None:
    gateway, cache = play(markers=False)
    ask(gateway, next(conversation()), by_hand=False)

    assert _marks(cache.bodies[0]) == []


def _marks(value: Any) -> list[Any]:
    """Returns all markers anywhere inside the value."""
    if isinstance(value, dict):
        return [item for name, item in value.items() if name == "cache_control"] + [
            mark for item in value.values() for mark in _marks(item)
        ]
    return [mark for item in value for mark in _marks(item)] if isinstance(value, list) else []


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unmarked(item) for name, item in value.items() if name != "cache_control"}
    return [_unmarked(item) for item in value] if isinstance(value, list) else value


def _listed(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
