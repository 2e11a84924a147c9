"""OpenAI's files and batches. A request that the vendor would refuse gets its refusal; each rule names its page.

- https://platform.openai.com/docs/api-reference/files/create: the form, the purposes
- https://platform.openai.com/docs/api-reference/batch/create: the fields, the endpoints, the window
- https://platform.openai.com/docs/guides/batch: the lines of an input file, of an output file and of an error file
"""

from __future__ import annotations

import json
from email.message import Message
from typing import Any

from integrations.providers.common.multipart import parts_of, text_of
from tests.fakes.batches.server import NOW, Answer, BatchServer, Refusal, as_json, require
from tests.fakes.upstream import Received

KEY = "sk-fake-batches"
MODEL = "gpt-4o-mini-2024-07-18"
_PURPOSES = frozenset({"assistants", "batch", "fine-tune", "vision", "user_data", "evals"})
_FORM_FIELDS = frozenset({"purpose", "file", "expires_after[anchor]", "expires_after[seconds]"})
_FIELDS = frozenset({"input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after"})
_ENDPOINTS = frozenset({"/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/completions"})
_LINE_FIELDS = frozenset({"custom_id", "method", "url", "body"})
_BAD = "bad"
"""A line whose `custom_id` begins with this fails at the vendor."""


def usage_of(number: int) -> dict[str, Any]:
    return {
        "prompt_tokens": 100 + number,
        "completion_tokens": 10 + number,
        "total_tokens": 110 + 2 * number,
        "prompt_tokens_details": {"cached_tokens": 40},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }


class OpenAIBatches(BatchServer):
    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, dict[str, Any]] = {}
        self.contents: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def refused(self, refusal: Refusal) -> bytes:
        kind = "invalid_request_error"
        return json.dumps({"error": {"message": refusal.message, "type": kind, "param": None, "code": None}}).encode()

    def handle(self, request: Received, path: str, query: dict[str, str]) -> Answer:
        require(request.headers.get("authorization") == f"Bearer {KEY}", "Incorrect API key provided", 401)
        match request.method, path.strip("/").split("/")[1:]:
            case "POST", ["files"]:
                return self._upload(request)
            case "GET", ["files"]:
                return as_json({"object": "list", "data": list(self.files.values()), "has_more": False})
            case "GET", ["files", name]:
                return as_json(self._file(name))
            case "GET", ["files", name, "content"]:
                self._file(name)
                return 200, self.contents[name], {"content-type": "application/octet-stream"}
            case "DELETE", ["files", name]:
                del self.files[self._file(name)["id"]]
                return as_json({"id": name, "object": "file", "deleted": True})
            case "POST", ["batches"]:
                return self._create(request)
            case "GET", ["batches"]:
                return as_json({"object": "list", "data": list(self.batches.values()), "has_more": False})
            case "GET", ["batches", name]:
                return as_json(self._batch(name))
            case "POST", ["batches", name, "cancel"]:
                return self._cancel(name)
        raise Refusal(404, f"Invalid URL ({request.method} {path})")

    def finish(self, name: str) -> None:
        batch = self._batch(name)
        done: list[str] = []
        failed: list[str] = []
        for number, text in enumerate(self.contents[batch["input_file_id"]].splitlines()):
            line = json.loads(text)
            is_bad = line["custom_id"].startswith(_BAD)
            (failed if is_bad else done).append(json.dumps(_result(line, number, is_bad=is_bad)))
        for field, lines in (("output_file_id", done), ("error_file_id", failed)):
            if lines:
                content = "\n".join(lines).encode() + b"\n"
                batch[field] = self._add(f"{field}.jsonl", "batch_output", content)["id"]
        batch["request_counts"] = {"total": len(done) + len(failed), "completed": len(done), "failed": len(failed)}
        batch |= {"status": "completed", "completed_at": NOW + 60}

    def _upload(self, request: Received) -> Answer:
        require(request.headers.get("content-type", "").startswith("multipart/form-data"), "expected a form", 415)
        boundary = Message()
        boundary["content-type"] = request.headers["content-type"]
        named = boundary.get_param("boundary")
        require(request.body.startswith(f"--{named}\r\n".encode()), "Could not parse multipart form")
        parts = {part.name: part for part in parts_of(request.body)}
        unknown = parts.keys() - _FORM_FIELDS
        require(not unknown, f"Unknown parameter: {sorted(unknown)}")
        require({"purpose", "file"} <= parts.keys(), "'purpose' and 'file' are required")
        purpose = text_of(request.body, parts["purpose"])
        require(purpose in _PURPOSES, f"'{purpose}' is not one of {sorted(_PURPOSES)} - 'purpose'")
        part = parts["file"]
        content = request.body[part.start : part.end]
        require(content, "The file is empty")
        require(purpose != "batch" or str(part.filename).endswith(".jsonl"), "Invalid file format: expected .jsonl")
        return as_json(self._add(str(part.filename), purpose, content))

    def _add(self, filename: str, purpose: str, content: bytes) -> dict[str, Any]:
        name = f"file-{len(self.contents) + 1:04d}{self.port}"
        self.contents[name] = content
        self.files[name] = {
            "id": name,
            "object": "file",
            "bytes": len(content),
            "created_at": NOW,
            "filename": filename,
            "purpose": purpose,
            "status": "processed",
        }
        return self.files[name]

    def _create(self, request: Received) -> Answer:
        require(request.headers.get("content-type") == "application/json", "expected JSON", 415)
        fields = json.loads(request.body)
        unknown = fields.keys() - _FIELDS
        require(not unknown, f"Unknown parameter: {sorted(unknown)}")
        for name in ("input_file_id", "endpoint", "completion_window"):
            require(name in fields, f"Missing required parameter: '{name}'")
        require(fields["completion_window"] == "24h", "completion_window: only '24h' is supported")
        require(fields["endpoint"] in _ENDPOINTS, f"endpoint: expected one of {sorted(_ENDPOINTS)}")
        file = self._file(fields["input_file_id"])
        require(file["purpose"] == "batch", "the file's purpose is not batch")
        errors = _errors(self.contents[file["id"]], fields["endpoint"])
        name = f"batch_{len(self.batches) + 1:04d}{self.port}"
        self.batches[name] = {
            "id": name,
            "object": "batch",
            "endpoint": fields["endpoint"],
            "errors": {"object": "list", "data": errors} if errors else None,
            "input_file_id": file["id"],
            "completion_window": "24h",
            "status": "failed" if errors else "in_progress",
            "output_file_id": None,
            "error_file_id": None,
            "created_at": NOW,
            "metadata": fields.get("metadata"),
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
        }
        return as_json(self.batches[name])

    def _cancel(self, name: str) -> Answer:
        batch = self._batch(name)
        require(batch["status"] in ("validating", "in_progress"), f"the batch is {batch['status']}", 409)
        batch["status"] = "cancelling"
        return as_json(batch)

    def _file(self, name: str) -> dict[str, Any]:
        require(name in self.files, f"No such File object: {name}", 404)
        return self.files[name]

    def _batch(self, name: str) -> dict[str, Any]:
        require(name in self.batches, f"No batch found with id '{name}'.", 404)
        return self.batches[name]


def _errors(content: bytes, endpoint: str) -> list[dict[str, Any]]:
    found, seen, models = [], set(), set()
    for number, text in enumerate(content.splitlines(), 1):
        line = json.loads(text)
        fits = line.keys() == _LINE_FIELDS and line["method"] == "POST" and line["url"] == endpoint
        if not fits or line["custom_id"] in seen or line["body"].get("stream"):
            found.append({"code": "invalid_request", "line": number, "message": "not a request", "param": None})
        seen.add(line.get("custom_id"))
        models.add(line.get("body", {}).get("model"))
    if len(models) > 1:
        found.append({"code": "mismatched_model", "line": None, "message": "several models", "param": "model"})
    return found


def _result(line: dict[str, Any], number: int, *, is_bad: bool) -> dict[str, Any]:
    body: dict[str, Any]
    if is_bad:
        body = {"error": {"message": "Invalid 'messages'", "type": "invalid_request_error", "code": "invalid_value"}}
    else:
        body = _answer(line["url"], number)
    response = {"status_code": 400 if is_bad else 200, "request_id": f"req_{number}", "body": body}
    return {"id": f"batch_req_{number}", "custom_id": line["custom_id"], "response": response, "error": None}


def _answer(url: str, number: int) -> dict[str, Any]:
    if url == "/v1/embeddings":
        usage = {"prompt_tokens": 7 + number, "total_tokens": 7 + number}
        data = [{"object": "embedding", "index": 0, "embedding": [0.25]}]
        return {"object": "list", "model": "text-embedding-3-small", "data": data, "usage": usage}
    message = {"role": "assistant", "content": f"answer {number}"}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": NOW,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage_of(number),
    }
