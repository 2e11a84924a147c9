"""Anthropic's message batches. A request that the vendor would refuse gets its refusal; each rule names its page.

- https://platform.claude.com/docs/en/api/creating-message-batches: the requests, their ids, `max_tokens`
- https://platform.claude.com/docs/en/api/retrieving-message-batch-results: only of a batch that has ended
- https://platform.claude.com/docs/en/api/deleting-message-batches: the same
- https://platform.claude.com/docs/en/api/errors: the form of errors
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.fakes.batches.server import Answer, BatchServer, Refusal, as_json, require
from tests.fakes.upstream import Received

KEY = "sk-ant-fake-batches"
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_PARAMS = frozenset(
    {
        *("model", "max_tokens", "messages", "system", "temperature", "top_p", "top_k", "stop_sequences", "metadata"),
        *("tools", "tool_choice", "thinking", "service_tier"),
    }
)
# https://platform.claude.com/docs/en/api/versioning
_VERSIONS = ("2023-06-01", "2026-10-21")
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}
_AT = "2025-10-09T08:53:20Z"


def usage_of(number: int) -> dict[str, Any]:
    return {
        "input_tokens": 50 + number,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 10,
        "output_tokens": 5 + number,
        "service_tier": "batch",
    }


class AnthropicBatches(BatchServer):
    def __init__(self) -> None:
        super().__init__()
        self.batches: dict[str, dict[str, Any]] = {}
        self.requests: dict[str, list[dict[str, Any]]] = {}
        self.results: dict[str, bytes] = {}

    def refused(self, refusal: Refusal) -> bytes:
        kind = _TYPES.get(refusal.status, "api_error")
        return json.dumps({"type": "error", "error": {"type": kind, "message": refusal.message}}).encode()

    def handle(self, request: Received, path: str, query: dict[str, str]) -> Answer:
        # The vendor's SDKs send the key in one of two headers, as their version has it.
        sent = (request.headers.get("x-api-key"), request.headers.get("authorization"))
        require(sent in ((KEY, None), (None, f"Bearer {KEY}")), "invalid x-api-key", 401)
        require(request.headers.get("anthropic-version") in _VERSIONS, "anthropic-version: header is required")
        match request.method, path.strip("/").split("/"):
            case "POST", ["v1", "messages", "batches"]:
                return self._create(request)
            case "GET", ["v1", "messages", "batches"]:
                return as_json({"data": list(self.batches.values()), "has_more": False})
            case "GET", ["v1", "messages", "batches", name]:
                return as_json(self._batch(name))
            case "DELETE", ["v1", "messages", "batches", name]:
                require(self._batch(name)["processing_status"] == "ended", "the batch has not ended")
                del self.batches[name]
                return as_json({"id": name, "type": "message_batch_deleted"})
            case "POST", ["v1", "messages", "batches", name, "cancel"]:
                batch = self._batch(name)
                require(batch["processing_status"] == "in_progress", "the batch has ended")
                batch["processing_status"] = "canceling"
                return as_json(batch)
            case "GET", ["v1", "messages", "batches", name, "results"]:
                require(self._batch(name)["processing_status"] == "ended", "the batch has no results yet", 404)
                return 200, self.results[name], {"content-type": "application/x-jsonl"}
        raise Refusal(404, "Not Found")

    def finish(self, name: str) -> None:
        """Requests called `errored…`, `expired…` or `canceled…` end as that."""
        batch, lines = self._batch(name), []
        for number, request in enumerate(self.requests[name]):
            lines.append(json.dumps({"custom_id": request["custom_id"], "result": _result(request, number)}))
        self.results[name] = "\n".join(lines).encode() + b"\n"
        batch |= {
            "processing_status": "ended",
            "ended_at": _AT,
            "results_url": f"https://api.anthropic.com/v1/messages/batches/{name}/results",
        }

    def _create(self, request: Received) -> Answer:
        fields = json.loads(request.body)
        require(
            fields.keys() == {"requests"}, f"{sorted(fields.keys() - {'requests'})}: Extra inputs are not permitted"
        )
        seen: set[str] = set()
        for index, one in enumerate(fields["requests"]):
            require(one.keys() == {"custom_id", "params"}, f"requests.{index}: Extra inputs are not permitted")
            require(_ID.match(one["custom_id"]), f"requests.{index}.custom_id: String should match pattern")
            require(one["custom_id"] not in seen, f"requests.{index}.custom_id: not unique")
            seen.add(one["custom_id"])
            params = one["params"]
            for name in ("model", "max_tokens", "messages"):
                require(name in params, f"requests.{index}.params.{name}: Field required")
            unknown = params.keys() - _PARAMS
            require(not unknown, f"requests.{index}.params.{sorted(unknown)}: Extra inputs are not permitted")
        name = f"msgbatch_{len(self.batches) + 1:04d}{self.port}"
        self.requests[name] = fields["requests"]
        counts = {"processing": len(seen), "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
        self.batches[name] = {
            "id": name,
            "type": "message_batch",
            "processing_status": "in_progress",
            "request_counts": counts,
            "created_at": _AT,
            "expires_at": _AT,
            "ended_at": None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": None,
        }
        return as_json(self.batches[name])

    def _batch(self, name: str) -> dict[str, Any]:
        require(name in self.batches, f"Message batch {name} not found", 404)
        return self.batches[name]


def _result(request: dict[str, Any], number: int) -> dict[str, Any]:
    name = request["custom_id"]
    if name.startswith("errored"):
        error = {"type": "invalid_request_error", "message": "max_tokens: too large"}
        return {"type": "errored", "error": {"type": "error", "error": error}}
    if name.startswith(("expired", "canceled")):
        return {"type": name.partition("-")[0]}
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": request["params"]["model"],
        "content": [{"type": "text", "text": f"answer {number}"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage_of(number),
    }
    return {"type": "succeeded", "message": message}
