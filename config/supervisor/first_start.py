"""The message of the first start: a project, its key, and a command that uses them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from core.services import BootstrappedProject


@dataclass(frozen=True, slots=True)
class Welcome:
    project_id: str
    api_key: str
    curl: str


def welcome(made: BootstrappedProject, base_url: str, *, sandbox: bool) -> Welcome:
    model = "sandbox/echo" if sandbox else "gpt-4o-mini"
    return Welcome(str(made.project_id), made.api_key, _curl(base_url, made.api_key, model))


def _curl(base_url: str, key: str, model: str) -> str:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hello"}]})
    return (
        f"curl {base_url}/api/gateway/v1/chat/completions -H 'Authorization: Bearer {key}' "
        f"-H 'Content-Type: application/json' -d '{body}'"
    )
