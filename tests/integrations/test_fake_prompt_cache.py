"""Tests the fake of Anthropic's prompt cache with the vendor's official SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import Anthropic, BadRequestError

from tests.fakes.prompt_cache import PromptCache
from tests.fakes.scripted import ScriptedServer

MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
LONG = "A sentence of some words. " * 400


@pytest.fixture
def cache() -> PromptCache:
    return PromptCache()


@pytest.fixture
def client(cache: PromptCache) -> Iterator[Anthropic]:
    with ScriptedServer() as server:
        server.play("cache", cache.step)
        with Anthropic(api_key="sk-ant-test", base_url=server.base_url("cache"), max_retries=0) as made:
            yield made


def ask(client: Anthropic, content: Any, system: Any = LONG) -> tuple[int, int, int]:
    """Returns the tokens of fresh input, read and written."""
    message = client.messages.create(
        model="claude-sonnet-5", max_tokens=100, system=system, messages=[{"role": "user", "content": content}]
    )
    usage = message.usage
    return usage.input_tokens, usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0


def test_cache__nothing_marked__all_is_fresh(client: Anthropic) -> None:
    first, second = ask(client, "one"), ask(client, "one")
    assert first == second
    assert first[1:] == (0, 0)


def test_cache__marked_system__is_written_then_read(client: Anthropic) -> None:
    system = [{"type": "text", "text": LONG, **MARK}]
    fresh, read, written = ask(client, "one", system)
    assert (read, written > 2000) == (0, True)
    assert ask(client, "two", system) == (fresh, written, 0)
    assert ask(client, "two", [{"type": "text", "text": f"!{LONG}", **MARK}])[1] == 0


def test_cache__short_prefix__is_not_kept(client: Anthropic) -> None:
    system = [{"type": "text", "text": "Short.", **MARK}]
    assert ask(client, "one", system)[1:] == ask(client, "one", system)[1:] == (0, 0)


@pytest.mark.parametrize(("blocks", "is_read"), [(20, True), (21, False)])
def test_cache__entry_some_blocks_before_the_marker__is_found_within_20(
    client: Anthropic, blocks: int, is_read: bool
) -> None:
    first = [{"type": "text", "text": "0", **MARK}]
    later = [{"type": "text", "text": str(number)} for number in range(blocks + 1)]
    ask(client, first)
    assert (ask(client, [*later[:-1], {**later[-1], **MARK}])[1] > 0) is is_read


def test_cache__five_markers__400(client: Anthropic) -> None:
    with pytest.raises(BadRequestError, match="maximum of 4"):
        ask(client, [{"type": "text", "text": str(number), **MARK} for number in range(5)])
