"""The message of the first start: a project, its key, and a command that uses them."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import TextIO

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


def show(made: Welcome) -> bool:
    """Prints the first key and returns whether it can have been read; if not, a later start makes another."""
    if _leads_nowhere(sys.stdout):
        return False
    lines = (
        "First start: a project and its key were made. The key is shown only now.",
        f"  project id  {made.project_id}",
        f"  API key     {made.api_key}",
        f"\nTry it, once the service says that it serves:\n\n  {made.curl}\n",
    )
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    return True


def _leads_nowhere(stream: TextIO) -> bool:
    try:
        return os.fstat(stream.fileno()).st_rdev == os.stat(os.devnull).st_rdev
    except (OSError, ValueError):
        return False  # The output is no file but a test's buffer, which the test reads.
