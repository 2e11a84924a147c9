"""The recorded exchanges of SHARED_DIR (default: `shared` beside the project). A clone without them runs as well."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_PROJECT = Path(__file__).resolve().parent.parent
SHARED_DIR = (_PROJECT / os.environ.get("SHARED_DIR", "../shared")).resolve()
OPENAI_DIALECT = "openai.chat_completions"
# The numbers of recordings in a complete SHARED_DIR: the header of a test run says how many were not found.
EXPECTED = {
    OPENAI_DIALECT: 78,
    "anthropic.messages": 20,
    "google.generateContent": 13,
    "google.streamGenerateContent": 9,
    "bedrock.converse": 10,
    "bedrock.converse_stream": 9,
    "cohere.v2_chat": 8,
}


@dataclass(frozen=True, slots=True)
class Recording:
    api: str
    name: str
    provider: str
    model: str
    stream: bool
    status: int
    features: frozenset[str]
    path: str
    request: Mapping[str, Any]
    headers: Mapping[str, str]
    body: bytes
    request_headers: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


@cache
def recordings_of(*apis: str) -> tuple[Recording, ...]:
    folder = SHARED_DIR / "recordings"
    try:
        index = json.loads((folder / "INDEX.json").read_bytes())
    except FileNotFoundError:
        return ()
    return tuple(_load(folder / row["file"], row) for row in index if row["api"] in apis)


def missing_recordings() -> int:
    return max(0, sum(EXPECTED.values()) - len(recordings_of(*EXPECTED)))


def shared_file(*parts: str) -> Path | None:
    file = SHARED_DIR.joinpath(*parts)
    return file if file.exists() else None


def _load(file: Path, row: Mapping[str, Any]) -> Recording:
    exchange = json.loads(file.read_bytes())
    response = exchange["response"]
    return Recording(
        api=row["api"],
        name=row["name"],
        provider=row["provider"],
        model=row["model"],
        stream=bool(row["stream"]),
        status=row["status"],
        features=frozenset(row["features"]),
        path=row["path"],
        request=exchange["request"]["body"] or {},
        headers=response["headers"],
        body=_body(response),
        request_headers=exchange["request"]["headers"],
    )


def _body(response: Mapping[str, Any]) -> bytes:
    """AWS event streams are binary and stored as base64."""
    if response.get("body_base64") is not None:
        return base64.b64decode(response["body_base64"])
    text: str = response["body_text"]
    return text.encode()
