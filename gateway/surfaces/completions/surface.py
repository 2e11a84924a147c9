"""The surface of completions."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.surfaces.base import StreamEncoder, SurfaceRequest
from gateway.surfaces.chat.surface import ChatSurface
from gateway.surfaces.completions.request import read, with_prompt
from gateway.surfaces.completions.response import whole
from gateway.surfaces.completions.stream import CompletionStream
from prompts.content.messages import PromptMessage


class CompletionsSurface(ChatSurface):
    """Errors and what is forwarded are as those of chat completions."""

    name = "completions"
    operation = "completions"

    def read(self, body: bytes) -> SurfaceRequest:
        return read(body)

    def answer(self, request: SurfaceRequest, completion: bytes, request_id: str) -> bytes:
        return whole(completion, request_id)

    def stream(self, request: SurfaceRequest, request_id: str) -> StreamEncoder:
        return CompletionStream(request_id)

    def with_prompt(self, body: bytes, messages: Sequence[PromptMessage]) -> bytes:
        return with_prompt(body, messages)


SURFACE = CompletionsSurface()
