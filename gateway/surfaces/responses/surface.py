"""The surface of the Responses API."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.surfaces.base import StreamEncoder, SurfaceRequest
from gateway.surfaces.chat.surface import ChatSurface
from gateway.surfaces.responses.prompt import with_prompt
from gateway.surfaces.responses.reasoning import without_foreign
from gateway.surfaces.responses.request import read
from gateway.surfaces.responses.response import whole
from gateway.surfaces.responses.stream import ResponseStream
from prompts.content.messages import PromptMessage


class ResponsesSurface(ChatSurface):
    """Errors are as those of chat completions."""

    name = "responses"
    operation = "responses"

    def read(self, body: bytes) -> SurfaceRequest:
        return read(body)

    def answer(self, request: SurfaceRequest, completion: bytes, request_id: str) -> bytes:
        return whole(request, completion, request_id)

    def stream(self, request: SurfaceRequest, request_id: str) -> StreamEncoder:
        return ResponseStream(request, request_id)

    def forwarded(self, body: bytes) -> bytes:
        return without_foreign(body)

    def with_prompt(self, body: bytes, messages: Sequence[PromptMessage]) -> bytes:
        return with_prompt(body, messages)


SURFACE = ResponsesSurface()
