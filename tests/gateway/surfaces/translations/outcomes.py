"""Runs the examples of the tables: what a surface makes of a request, an answer or a stream, as JSON.

An example has `request`, fields beside those of the surface's usual request, or its whole `body` as text or base64.
Beside it stand `completion` (a message, its finish reason and fields of the completion), `chunks` and `last` (the
pieces of a stream, and those that end it), or `prompt` (a managed prompt for the client's own body). Without any of
these the request itself is translated.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.errors import ApplicationError
from gateway.surfaces.base import Surface, SurfaceRequest
from gateway.surfaces.gemini.surface import GeminiSurface
from gateway.surfaces.messages.surface import COUNT_TOKENS
from gateway.surfaces.messages.surface import SURFACE as MESSAGES
from gateway.surfaces.responses.surface import SURFACE as RESPONSES
from tests.gateway.surfaces.gemini.clients import ASK as GEMINI_ASK
from tests.gateway.surfaces.gemini.clients import MODEL
from tests.gateway.surfaces.messages.clients import ASK as MESSAGES_ASK
from tests.tables.translated import Tables

Json = dict[str, Any]

REQUEST_ID = "0192d1c4-5b5e-7a3c-9c1d-2f3a4b5c6d7e"
SURFACES: Mapping[str, tuple[Surface, Json]] = {
    "messages": (MESSAGES, MESSAGES_ASK),
    "count_tokens": (COUNT_TOKENS, {}),
    "responses": (RESPONSES, {"model": "gpt-5", "input": "Hi"}),
    "gemini": (GeminiSurface(MODEL), GEMINI_ASK),
}
GIVEN = ("surface", "request", "body", "completion", "chunks", "last", "prompt")
_USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
_HEAD = {"id": "chatcmpl-1", "created": 1, "model": "gpt-4o"}
_SHOWN = ("untranslatable", "warnings", "session_id", "is_stateful", "is_plain", "opaque", "tool_names")


def surface_of(example: Json) -> Surface:
    return SURFACES[example["surface"]][0]


def body_of(example: Json) -> bytes:
    body = example.get("body")
    if isinstance(body, Mapping):
        return base64.b64decode(body["base64"])
    if body is not None:
        return str(body).encode()
    return json.dumps({**SURFACES[example["surface"]][1], **example.get("request", {})}, ensure_ascii=False).encode()


def outcome_of(example: Json) -> Json:
    surface, body = surface_of(example), body_of(example)
    if "prompt" in example:
        return {"changed": surface.with_prompt(body, example["prompt"]).decode()}
    try:
        request = surface.read(body)
    except ApplicationError as error:
        return {"refused": {"code": error.code, "message": error.message}}
    outcome: Json = {}
    if "completion" in example:
        outcome["answer"] = json.loads(surface.answer(request, completion(example["completion"]), REQUEST_ID))
    if "chunks" in example:
        outcome["events"] = events_of(streamed(example, request, at=[]))
    return json.loads(json.dumps(outcome)) if outcome else _read(request)


def completion(fields: Json) -> bytes:
    more = dict(fields)
    message = {"role": "assistant", **more.pop("message", {})}
    choice = {"index": 0, "message": message, "finish_reason": more.pop("finish_reason", "stop")}
    head = {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}
    return json.dumps({**head, **more}, ensure_ascii=False).encode()


def streamed(example: Json, request: SurfaceRequest, *, at: Sequence[int]) -> bytes:
    """Returns the frames of a stream whose chunks come in pieces that begin at these places."""
    chunks = [_chunk(fields) for fields in example["chunks"]]
    encoder = surface_of(example).stream(request, REQUEST_ID)
    borders = [0, *at, len(chunks)]
    frames = [encoder.feed(chunks[start:end]) for start, end in itertools.pairwise(borders)]
    return b"".join([*frames, encoder.close([_chunk(fields) for fields in example.get("last", ())])])


def events_of(frames: bytes) -> list[Json]:
    """Returns the events, each of which has to be framed under its own name."""
    found = []
    for frame in frames.decode().split("\n\n")[:-1]:
        *names, data = frame.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert names in ([], [f"event: {event.get('type')}"])
        found.append(event)
    return found


def _chunk(fields: Json) -> bytes:
    more = dict(fields)
    choice = {"index": more.pop("index", 0), "delta": more.pop("delta", {}), "finish_reason": more.pop("finish", None)}
    return json.dumps({**_HEAD, "object": "chat.completion.chunk", "choices": [choice], **more}).encode()


def _read(request: SurfaceRequest) -> Json:
    shown = {name: value for name in _SHOWN if (value := getattr(request, name))}
    outcome: Json = json.loads(json.dumps({"chat": json.loads(request.body), **shown}))
    return outcome


TABLES = Tables(Path(__file__).parent, GIVEN, outcome_of, usual=("surface", "request"))
