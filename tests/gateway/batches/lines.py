"""The requests of the tests' batches."""

from __future__ import annotations

import json
from typing import Any

from tests.gateway.batches.conftest import CLAUDE, MODEL


def line(custom_id: str, **changed: Any) -> dict[str, Any]:
    body = {"model": MODEL, "messages": [{"role": "user", "content": f"question {custom_id}"}]}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body, **changed}


def jsonl(*lines: dict[str, Any] | str) -> bytes:
    return "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines).encode()


def message_request(custom_id: str, **params: Any) -> Any:
    messages = [{"role": "user", "content": f"question {custom_id}"}]
    return {"custom_id": custom_id, "params": {"model": CLAUDE, "max_tokens": 64, "messages": messages, **params}}
