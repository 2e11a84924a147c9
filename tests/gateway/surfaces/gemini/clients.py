"""Runs the surface of the Gemini API below Google's official SDK, without a network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
from google import genai
from google.genai import types

from gateway.surfaces.gemini.surface import GeminiSurface

REQUEST_ID = "0192d1c4-5b5e-7a3c-9c1d-2f3a4b5c6d7e"
MODEL = "sandbox/echo"
SURFACE = GeminiSurface(MODEL)
ASK: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}

Json = dict[str, Any]


def ask(**fields: Any) -> bytes:
    return json.dumps({**ASK, **fields}, ensure_ascii=False).encode()


def client_of(status: int, body: bytes, content_type: str = "application/json") -> genai.Client:
    """Returns a client whose every request is answered with the body."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=body, headers={"content-type": content_type})

    made = httpx2.Client(transport=httpx2.MockTransport(answer))
    return genai.Client(api_key="svc_k", http_options=types.HttpOptions(httpx_client=made))


def read_whole(body: bytes) -> types.GenerateContentResponse:
    return client_of(200, body).models.generate_content(model="m", contents="Hi")


def read_stream(frames: bytes) -> list[types.GenerateContentResponse]:
    return [*client_of(200, frames, "text/event-stream").models.generate_content_stream(model="m", contents="Hi")]


def events_of(frames: bytes) -> Iterator[Json]:
    """Yields the data of the events, and the failure that ends a stream."""
    assert frames.endswith(b"\n\n")
    for block in frames.decode().removesuffix("\n\n").split("\n\n"):
        yield json.loads(block.removeprefix("data: "))
