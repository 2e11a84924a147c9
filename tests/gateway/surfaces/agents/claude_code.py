"""Thirty turns of Claude Code on the Messages API: thinking with signatures, calls of several tools, cache markers of
both lifetimes (https://code.claude.com/docs/en/llm-gateway-protocol)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.gateway.surfaces.agents.turns import (
    SESSION,
    TURNS,
    Json,
    Turn,
    compact,
    dollars,
    event,
    file_of,
    opaque,
    pieces,
)

MODEL = "claude-sonnet-4-5"
PATH = "/api/gateway/v1/messages?beta=true"
HEADERS = {
    "accept": "application/json",
    "anthropic-beta": "claude-code-20250219,context-1m-2025-08-07,interleaved-thinking-2025-05-14,"
    "context-management-2025-06-27,prompt-caching-scope-2026-01-05,effort-2025-11-24",
    "anthropic-dangerous-direct-browser-access": "true",
    "anthropic-version": "2023-06-01",
    "content-type": "application/json",
    "user-agent": "claude-cli/2.1.76 (external, cli)",
    "x-app": "cli",
    "x-claude-code-session-id": SESSION,
    "x-stainless-helper-method": "stream",
    "x-stainless-lang": "js",
    "x-stainless-retry-count": "0",
}
# US dollars for a million tokens (https://platform.claude.com/docs/en/about-claude/pricing): a write for five minutes
# costs 1.25 times the input, one for an hour 2 times, a read 0.1 times.
_INPUT, _WRITE, _WRITE_1H, _READ, _OUTPUT = "3", "3.75", "6", "0.3", "15"
_FOR_AN_HOUR = {"type": "ephemeral", "ttl": "1h"}
_SYSTEM: list[Json] = [
    {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.76; cc_entrypoint=cli;"},
    {"type": "text", "text": "You work on a repository with the user.\n\n# Rules\n- Read before you write.\n" * 40,
     "cache_control": _FOR_AN_HOUR},
]  # fmt: skip
_TOOLS: list[Json] = [
    {
        "name": name,
        "description": f"{name}: {what}",
        "input_schema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {field: {"type": "string"} for field in fields},
            "required": list(fields),
            "additionalProperties": False,
        },
    }
    for name, what, fields in (
        ("Bash", "runs a command", ("command", "description")),
        ("Edit", "replaces a text", ("file_path", "old_string", "new_string")),
        ("Read", "reads a file", ("file_path",)),
    )
]


def turns() -> Iterator[Turn]:
    """Yields the turns of one session; each request holds all that came before it."""
    history: list[Json] = []
    cached = 0
    for number in range(TURNS):
        history.append({"role": "user", "content": _user_content(number)})
        body = compact(_request(_marked(history)))
        content = _content(number)
        usage = _usage(len(body) // 4, cached, number)
        cached = usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
        yield _turn(body, _stream(number, content, usage), usage)
        history.append({"role": "assistant", "content": content})


def _user_content(number: int) -> list[Json]:
    """Returns what the agent sends: a task of the user's, or the results of the tools that were called last."""
    calls = [block for block in _content(number - 1) if block["type"] == "tool_use"] if number else []
    results: list[Json] = [
        {"tool_use_id": call["id"], "type": "tool_result", "content": file_of(number)[1] * 3} for call in calls
    ]
    if not results:
        reminder = {"type": "text", "text": f"<system-reminder>\nToday is day {number}.\n</system-reminder>"}
        return [reminder, {"type": "text", "text": f"Mend {file_of(number)[0]} — and say why “it” failed.\u2028"}]
    if number % 7 == 0:
        results[0] = {
            **results[0],
            "is_error": True,
            "content": [{"type": "text", "text": "exit 1\n\x1b[31mno\x1b[0m"}],
        }
    return results


def _content(number: int) -> list[Json]:
    """Returns the model's answer: thinking, a text, and calls, except in every tenth turn."""
    path, text = file_of(number)
    blocks: list[Json] = [
        {"type": "thinking", "thinking": f"The file {path} comes first.", "signature": opaque(f"sign {number}")},
        {"type": "text", "text": f"I look at `{path}`: {text.splitlines()[0]}"},
    ]
    if number % 11 == 5:
        blocks[0] = {"type": "redacted_thinking", "data": opaque(f"hidden {number}")}
    if number % 10 == 9:
        return blocks
    for position, name in enumerate(("Read", "Edit")[: 1 + number % 2]):
        given = (
            {"file_path": path} if name == "Read" else {"file_path": path, "old_string": text, "new_string": "«ok»\t"}
        )
        call = {"type": "tool_use", "id": f"toolu_{number:02}{position}", "name": name, "input": given}
        blocks.append({**call, "caller": {"type": "direct"}} if number % 3 == 0 else call)
    return blocks


def _marked(history: list[Json]) -> list[Json]:
    """Returns the messages with a cache marker on the last block of the last one."""
    *rest, last = history
    *blocks, block = last["content"]
    return [*rest, {**last, "content": [*blocks, {**block, "cache_control": {"type": "ephemeral"}}]}]


def _request(messages: list[Json]) -> Json:
    ids = {"device_id": "d3" * 16, "account_uuid": "", "session_id": SESSION}
    return {
        "model": MODEL,
        "messages": messages,
        "system": _SYSTEM,
        "tools": _TOOLS,
        "metadata": {"user_id": json.dumps(ids, separators=(",", ":"))},
        "max_tokens": 32000,
        "thinking": {"budget_tokens": 31999, "type": "enabled"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "stream": True,
    }


def _usage(prompt: int, cached: int, number: int) -> Json:
    """Returns the vendor's counts: what the request before had in the cache is read, the rest is written, the tools and
    the system's text of the first request for an hour."""
    written = prompt - cached - 3
    for_an_hour = 1000 if number == 0 else 0
    return {
        "input_tokens": 3,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written - for_an_hour,
            "ephemeral_1h_input_tokens": for_an_hour,
        },
        "output_tokens": 200 + 17 * number,
        "service_tier": "standard",
        "inference_geo": "global",
    }


def _turn(body: bytes, answer: bytes, usage: Json) -> Turn:
    read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
    kept = usage["cache_creation"]
    cost = (
        dollars(usage["input_tokens"], _INPUT)
        + dollars(kept["ephemeral_5m_input_tokens"], _WRITE)
        + dollars(kept["ephemeral_1h_input_tokens"], _WRITE_1H)
        + dollars(read, _READ)
        + dollars(usage["output_tokens"], _OUTPUT)
    )
    prompt = usage["input_tokens"] + read + written
    return Turn(PATH, HEADERS, body, answer, cost, prompt, read, written, usage["output_tokens"])


def _stream(number: int, content: list[Json], usage: Json) -> bytes:
    message = {"id": f"msg_{number:02}", "type": "message", "role": "assistant", "model": f"{MODEL}-20250929"}
    head: Json = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    frames = [event("message_start", {"message": {**head, "usage": {**usage, "output_tokens": 1}}})]
    for index, block in enumerate(content):
        frames += _block(index, block)
        if index == 0:
            frames.append(b'event: ping\ndata: {"type": "ping"}\n\n')
    stop = "tool_use" if content[-1]["type"] == "tool_use" else "end_turn"
    counts = {name: usage[name] for name in usage if name.endswith("_tokens")}
    frames.append(event("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": counts}))
    # The vendor pads events with blanks.
    frames.append(b'event: message_stop\ndata: {"type":"message_stop"        }\n\n')
    return b"".join(frames)


def _block(index: int, block: Json) -> Iterator[bytes]:
    match block["type"]:
        case "thinking":
            begun = {**block, "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case "text":
            begun, deltas = (
                {**block, "text": ""},
                [{"type": "text_delta", "text": one} for one in pieces(block["text"])],
            )
        case "tool_use":
            given = compact(block["input"]).decode()
            begun = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(given))]
        case _:
            begun, deltas = block, []
    yield event("content_block_start", {"index": index, "content_block": begun})
    for delta in deltas:
        yield event("content_block_delta", {"index": index, "delta": delta})
    yield event("content_block_stop", {"index": index})
