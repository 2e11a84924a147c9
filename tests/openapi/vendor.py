"""A server in OpenAI's dialect that has every operation, and answers each as its vendor's documentation shows it."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from integrations.providers.common.multipart import parts_of, text_of
from tests.fakes.scripted import CREATED, answer
from tests.fakes.upstream import Connection, Received

_JSON = {"content-type": "application/json"}
_USAGE = {"prompt_tokens": 3, "total_tokens": 3}
_TEXT = {
    "id": "cmpl-1",
    "object": "text_completion",
    "created": CREATED,
    "model": "scripted-1",
    "choices": [{"text": "Hello", "index": 0, "logprobs": None, "finish_reason": "stop"}],
    "usage": {**_USAGE, "completion_tokens": 1, "total_tokens": 4},
}
_RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": CREATED,
    "status": "completed",
    "model": "scripted-1",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 3, "output_tokens": 1, "total_tokens": 4},
}
# The answers by the ends of paths, the longest first; those of a chat are scripted.
_ANSWERS: dict[str, dict[str, Any]] = {
    "/completions": _TEXT,
    "/responses": _RESPONSE,
    "/moderations": {"id": "m1", "model": "scripted-1", "results": [{"flagged": False, "categories": {}}]},
    "/rerank": {"id": "r1", "results": [{"index": 0, "relevance_score": 0.9}]},
    "/images/generations": {"created": CREATED, "data": [{"b64_json": "aW1hZ2U="}]},
    "/audio/transcriptions": {"text": "Hello"},
}
_chat = answer()


async def everything(request: Received, connection: Connection) -> None:
    path = request.path.partition("?")[0]
    if path.endswith("/chat/completions"):
        await _chat(request, connection)
    elif path.endswith("/audio/speech"):
        await connection.send_whole(200, b"ID3\x04not really music", {"content-type": "audio/mpeg"})
    elif path.endswith("/files"):
        await connection.send_whole(200, _new_file(request.body), _JSON)
    elif path.endswith("/embeddings"):
        await connection.send_whole(200, _embeddings(json.loads(request.body)), _JSON)
    elif path.endswith("/responses") and json.loads(request.body).get("stream"):
        await _stream(connection, {"type": "response.completed", "sequence_number": 0, "response": _RESPONSE})
    elif path.endswith("/completions") and json.loads(request.body).get("stream"):
        await _stream(connection, _TEXT, end=b"data: [DONE]\n\n")
    elif b'"response_format"' in request.body and b"\r\n\r\ntext\r\n" in request.body:
        await connection.send_whole(200, b"Hello\n", {"content-type": "text/plain"})
    else:
        made = next(made for end, made in _ANSWERS.items() if path.endswith(end))
        await connection.send_whole(200, json.dumps(made).encode(), _JSON)


def _new_file(form: bytes) -> bytes:
    """Returns OpenAI's answer to an upload (https://platform.openai.com/docs/api-reference/files/object)."""
    parts = {part.name: part for part in parts_of(form)}
    file = parts["file"]
    made = {
        "id": f"file-{uuid4().hex}",
        "object": "file",
        "bytes": file.end - file.start,
        "created_at": CREATED,
        "filename": file.filename,
        "purpose": text_of(form, parts["purpose"]),
        "status": "processed",
    }
    return json.dumps(made).encode()


def _embeddings(asked: dict[str, Any]) -> bytes:
    given = asked["input"]
    count = len(given) if isinstance(given, list) and not isinstance(given[0], int) else 1
    vectors = [{"object": "embedding", "index": index, "embedding": [0.5]} for index in range(count)]
    return json.dumps({"object": "list", "model": "scripted-1", "data": vectors, "usage": _USAGE}).encode()


async def _stream(connection: Connection, event: dict[str, Any], end: bytes = b"") -> None:
    await connection.start_stream()
    name = f"event: {event['type']}\n" if "type" in event else ""
    await connection.send_chunk(f"{name}data: {json.dumps(event)}\n\n".encode())
    if end:
        await connection.send_chunk(end)
    await connection.end_stream()
