"""Thirty turns of Codex on the Responses API: encrypted reasoning that goes round, calls of functions and of a custom
tool with a grammar (https://developers.openai.com/codex)."""

from __future__ import annotations

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

MODEL = "gpt-5-codex"
PATH = "/api/gateway/v1/responses"
HEADERS = {
    "accept": "text/event-stream",
    "content-type": "application/json",
    "conversation_id": SESSION,
    "openai-beta": "responses=experimental",
    "originator": "codex_cli_rs",
    "session_id": SESSION,
    "user-agent": "codex_cli_rs/0.98.0 (Debian 12.0.0; x86_64) xterm-256color",
    "version": "0.98.0",
}
# US dollars for a million tokens (https://platform.openai.com/docs/pricing); reading from the cache costs a tenth.
_INPUT, _READ, _OUTPUT = "1.25", "0.125", "10"
# The vendor's cache grows in steps of this many tokens.
_STEP = 128
_INSTRUCTIONS = "You work on a repository with the user.\n\n# Rules\n- Read before you write.\n" * 40
_GRAMMAR = 'start: begin hunk+ end\nbegin: "*** Begin Patch" LF\nend: "*** End Patch" LF?\n%import common.LF\n'
_TOOLS: list[Json] = [
    {
        "type": "function",
        "name": "shell",
        "description": "Runs a command and returns its output.",
        "strict": False,
        "parameters": {
            "type": "object",
            "properties": {
                "command": {"type": "array", "items": {"type": "string"}},
                "timeout_ms": {"type": "number"},
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    },
    {
        "type": "custom",
        "name": "apply_patch",
        "description": "Edits files by a patch.",
        "format": {"type": "grammar", "syntax": "lark", "definition": _GRAMMAR},
    },
    {"type": "web_search", "external_web_access": False},
]


def turns() -> Iterator[Turn]:
    """Yields the turns of one session; each request holds all that came before it."""
    history: list[Json] = []
    cached = 0
    for number in range(TURNS):
        history += _user_items(number)
        body = compact(_request(history))
        output = _output(number)
        usage = _usage(len(body) // 4, cached, number)
        cached = usage["input_tokens"] // _STEP * _STEP
        yield _turn(body, _stream(number, output, usage), usage)
        history += [_returned(item) for item in output]


def _user_items(number: int) -> list[Json]:
    """Returns what the agent sends: a task of the user's, or the outputs of the tools that were called last."""
    calls = [item for item in _output(number - 1) if item["type"].endswith("_call")] if number else []
    outputs = [
        {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": file_of(number)[1] * 3}
        for call in calls
    ]
    task = f"Mend {file_of(number)[0]} — and say why “it” failed.\u2028"
    return outputs or [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": task}]}]


def _output(number: int) -> list[Json]:
    """Returns the model's items: reasoning, then a call or, in every tenth turn, a text."""
    path, text = file_of(number)
    summary = [{"type": "summary_text", "text": f"**Looking at {path}**"}] if number % 2 else []
    encrypted = f"gAAAA{opaque(f'thought {number}')}"
    items: list[Json] = [
        {"id": f"rs_{number:02}", "type": "reasoning", "summary": summary, "encrypted_content": encrypted}
    ]
    call = {"status": "completed", "call_id": f"call_{number:02}"}
    if number % 10 == 9:
        part = {"type": "output_text", "text": f"`{path}` begins: {text}", "annotations": [], "logprobs": []}
        items.append({"id": f"msg_{number:02}", "type": "message", "status": "completed", "role": "assistant",
                      "content": [part]})  # fmt: skip
    elif number % 3 == 1:
        patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{text.splitlines()[0]}\n+«ok»\t\n*** End Patch"
        items.append({"id": f"ctc_{number:02}", "type": "custom_tool_call", **call, "name": "apply_patch",
                      "input": patch})  # fmt: skip
    else:
        given = compact({"command": ["bash", "-lc", f"cat '{path}'"], "timeout_ms": 1e3}).decode()
        items.append({"id": f"fc_{number:02}", "type": "function_call", **call, "name": "shell", "arguments": given})
    return items


def _returned(item: Json) -> Json:
    """Returns the item as the agent sends it back: without its id, since the vendor has kept nothing."""
    kept = {name: value for name, value in item.items() if name not in ("id", "status")}
    if item["type"] == "message":
        kept["content"] = [{"type": part["type"], "text": part["text"]} for part in item["content"]]
    return {**kept, "content": None} if item["type"] == "reasoning" else kept


def _request(items: list[Json]) -> Json:
    return {
        "model": MODEL,
        "instructions": _INSTRUCTIONS,
        "input": items,
        "tools": _TOOLS,
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": SESSION,
        "text": {"verbosity": "medium"},
    }


def _usage(prompt: int, cached: int, number: int) -> Json:
    output = 150 + 13 * number
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": output // 2},
        "total_tokens": prompt + output,
    }


def _turn(body: bytes, answer: bytes, usage: Json) -> Turn:
    prompt, output = usage["input_tokens"], usage["output_tokens"]
    read = usage["input_tokens_details"]["cached_tokens"]
    cost = dollars(prompt - read, _INPUT) + dollars(read, _READ) + dollars(output, _OUTPUT)
    return Turn(PATH, HEADERS, body, answer, cost, prompt, read, 0, output)


def _stream(number: int, output: list[Json], usage: Json) -> bytes:
    response: Json = {
        "id": f"resp_{number:02}",
        "object": "response",
        "created_at": 1_760_000_000 + number,
        "status": "in_progress",
        "model": MODEL,
        "output": [],
        "parallel_tool_calls": False,
        "store": False,
        "tool_choice": "auto",
        "tools": _TOOLS,
        "usage": None,
    }
    parts = [("response.created", {"response": response}), ("response.in_progress", {"response": response})]
    for index, item in enumerate(output):
        parts += _item(index, item)
    ended = {**response, "status": "completed", "output": output, "usage": usage}
    parts.append(("response.completed", {"response": ended}))
    return b"".join(event(kind, {"sequence_number": place, **fields}) for place, (kind, fields) in enumerate(parts))


def _item(index: int, item: Json) -> list[tuple[str, Json]]:
    """Returns the events of an item, each as its type and its fields."""
    place = {"output_index": index, "item_id": item["id"]}
    begun, parts = _grown(item, place)
    added = ("response.output_item.added", {"output_index": index, "item": begun})
    return [added, *parts, ("response.output_item.done", {"output_index": index, "item": item})]


def _grown(item: Json, place: Json) -> tuple[Json, list[tuple[str, Json]]]:
    """Returns the item as it begins, and the events by which it grows."""
    match item["type"]:
        case "reasoning":
            return {**item, "summary": []}, [one for part in item["summary"] for one in _summary(part, place)]
        case "message":
            return {**item, "status": "in_progress", "content": []}, _text(item["content"][0], place)
        case "custom_tool_call":
            name, kind = "input", "response.custom_tool_call_input"
        case _:
            name, kind = "arguments", "response.function_call_arguments"
    deltas = [(f"{kind}.delta", {**place, "delta": piece}) for piece in pieces(item[name])]
    return {**item, "status": "in_progress", name: ""}, [*deltas, (f"{kind}.done", {**place, name: item[name]})]


def _summary(part: Json, place: Json) -> list[tuple[str, Json]]:
    at, kind = {**place, "summary_index": 0}, "response.reasoning_summary"
    deltas = [(f"{kind}_text.delta", {**at, "delta": piece}) for piece in pieces(part["text"])]
    return [
        (f"{kind}_part.added", {**at, "part": {**part, "text": ""}}),
        *deltas,
        (f"{kind}_text.done", {**at, "text": part["text"]}),
        (f"{kind}_part.done", {**at, "part": part}),
    ]


def _text(part: Json, place: Json) -> list[tuple[str, Json]]:
    at = {**place, "content_index": 0}
    deltas = [("response.output_text.delta", {**at, "delta": piece, "logprobs": []}) for piece in pieces(part["text"])]
    return [
        ("response.content_part.added", {**at, "part": {**part, "text": ""}}),
        *deltas,
        ("response.output_text.done", {**at, "text": part["text"], "logprobs": []}),
        ("response.content_part.done", {**at, "part": part}),
    ]
