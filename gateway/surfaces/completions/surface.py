"""The surface of completions."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from core.errors import ApplicationError
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.completions.request import read, with_prompt
from gateway.surfaces.completions.response import whole
from gateway.surfaces.completions.stream import CompletionStream
from prompts.content.messages import PromptMessage


class CompletionsSurface:
    name = "completions"
    operation = "completions"
    native_only = False

    def read(self, body: bytes) -> SurfaceRequest:
        return read(body)

    def answer(self, request: SurfaceRequest, completion: bytes, request_id: str) -> bytes:
        return whole(completion, request_id)

    def stream(self, request: SurfaceRequest, request_id: str) -> CompletionStream:
        return CompletionStream(request_id)

    def error(self, error: ApplicationError, request_id: str) -> bytes:
        return msgspec.json.encode(error.envelope())

    def forwarded(self, body: bytes) -> bytes:
        return body

    def with_prompt(self, body: bytes, messages: Sequence[PromptMessage]) -> bytes:
        return with_prompt(body, messages)


SURFACE = CompletionsSurface()
