"""The parts of answers and stream events that are read; decoding skips the rest."""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.anthropic.iterations import CacheCreation, Turn, parts_of
from integrations.providers.common.charges import served_tier
from integrations.providers.usage import Usage

# Fast mode has prices of its own: https://docs.anthropic.com/en/docs/build-with-claude/fast-mode.
_FAST = "fast"


class OutputDetails(msgspec.Struct, gc=False):
    thinking_tokens: int | None = None


class ServerToolUse(msgspec.Struct, gc=False):
    web_search_requests: int | None = None


class Counts(msgspec.Struct, gc=False):
    """`input_tokens` leaves out tokens read from or written to the cache
    (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching#tracking-cache-performance)."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None
    cache_creation: CacheCreation | None = None
    server_tool_use: ServerToolUse | None = None
    service_tier: Any = None
    speed: Any = None
    iterations: msgspec.Raw = msgspec.Raw(b"")


class Block(msgspec.Struct):
    type: str
    text: str | None = None
    citations: Any = None
    thinking: str | None = None
    signature: str | None = None
    data: Any = None
    id: str | None = None
    name: str | None = None
    caller: Any = None
    toolset_name: str | None = None
    trigger: Any = None
    input: msgspec.Raw = msgspec.Raw(b"")


class Message(msgspec.Struct):
    """A whole answer, the head of a stream, or (`error`) a failure under status 200."""

    type: str = ""
    id: str = ""
    model: str = ""
    content: list[Block] | None = None
    stop_reason: str | None = None
    stop_sequence: Any = None
    stop_details: Any = None
    container: Any = None
    context_management: Any = None
    diagnostics: Any = None
    input_transformations: Any = None
    usage: Counts | None = None
    error: Any = None


class Delta(msgspec.Struct):
    type: str = ""
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    citation: Any = None
    stop_reason: str | None = None
    stop_sequence: Any = None
    stop_details: Any = None
    container: Any = None


class Event(msgspec.Struct):
    type: str = ""
    index: int = 0
    delta: Delta | None = None
    content_block: Block | None = None
    message: Message | None = None
    context_management: Any = None
    input_transformations: Any = None
    usage: Counts | None = None
    error: Any = None


def merged(older: Counts | None, newer: Counts | None) -> Counts | None:
    """Counts are cumulative, and an event may lack some of them, so the larger one is taken."""
    if older is None or newer is None:
        return newer if older is None else older
    return Counts(
        input_tokens=max(older.input_tokens or 0, newer.input_tokens or 0),
        cache_creation_input_tokens=max(older.cache_creation_input_tokens or 0, newer.cache_creation_input_tokens or 0),
        cache_read_input_tokens=max(older.cache_read_input_tokens or 0, newer.cache_read_input_tokens or 0),
        output_tokens=max(older.output_tokens or 0, newer.output_tokens or 0),
        output_tokens_details=newer.output_tokens_details or older.output_tokens_details,
        cache_creation=newer.cache_creation or older.cache_creation,
        server_tool_use=newer.server_tool_use or older.server_tool_use,
        service_tier=newer.service_tier or older.service_tier,
        speed=newer.speed or older.speed,
        iterations=newer.iterations or older.iterations,
    )


def at_the_end(usage: Usage | None, *, is_counted: bool) -> Usage | None:
    """The usage at the end of a stream. `is_counted`: an event after the output reported it; a count before the output
    covers the first token only."""
    if usage is None or is_counted:
        return usage
    return msgspec.structs.replace(usage, completion_tokens=0, reasoning_tokens=0)


def usage_in(message: Message, asked: str = "") -> Usage | None:
    counts = message.usage
    if counts is None:
        return None
    return usage_of(counts, _turn_of(message, asked) if counts.iterations else None)


def _turn_of(message: Message, asked: str) -> Turn:
    turn = Turn(asked)
    for block in message.content or ():
        if block.type == "fallback":
            turn.note(block.trigger)
    if message.stop_reason == "refusal":
        turn.note(message.stop_details)
    return turn


def usage_of(counts: Counts, turn: Turn | None = None) -> Usage:
    prompt, completion = counts.input_tokens or 0, counts.output_tokens or 0
    cache_read, cache_write = counts.cache_read_input_tokens or 0, counts.cache_creation_input_tokens or 0
    if prompt < 0 or completion < 0 or cache_read < 0 or cache_write < 0:
        prompt, completion = max(0, prompt), max(0, completion)
        cache_read, cache_write = max(0, cache_read), max(0, cache_write)
    # Most answers have none of the details, and a call for each that is absent would cost more than all the rest.
    details, creation, tools = counts.output_tokens_details, counts.cache_creation, counts.server_tool_use
    tier = "" if counts.service_tier is None else served_tier(counts.service_tier)
    usage = Usage(
        prompt_tokens=prompt + cache_read + cache_write,
        completion_tokens=completion,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        reasoning_tokens=0 if details is None else min(max(0, details.thinking_tokens or 0), completion),
        cache_write_1h_tokens=0 if creation is None else _cached_for_1h(creation, cache_write),
        # Each web search is charged (https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-search-tool).
        searches=0 if tools is None else max(0, tools.web_search_requests or 0),
        service_tier=_FAST if counts.speed == _FAST else tier,
    )
    if counts.iterations and (parts := parts_of(counts.iterations, usage, turn or Turn())):
        return msgspec.structs.replace(usage, parts=parts)
    return usage


def _cached_for_1h(creation: CacheCreation, cache_write: int) -> int:
    return min(max(0, creation.ephemeral_1h_input_tokens or 0), cache_write)
