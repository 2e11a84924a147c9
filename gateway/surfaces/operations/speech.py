"""Reads the request for speech (https://platform.openai.com/docs/api-reference/audio/createSpeech)."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.errors import ValidationError
from gateway.protocol.wire import Name
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import OperationFields, as_chat, decoded, refuse_chat_fields

MEDIA_TYPES = {
    "mp3": b"audio/mpeg",
    "opus": b"audio/ogg",
    "aac": b"audio/aac",
    "flac": b"audio/flac",
    "wav": b"audio/wav",
    "pcm": b"audio/pcm",
}
"""The content type of an answer, by the format that the request asks for."""


class SpeechRequest(OperationFields):
    model: Name
    input: str
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] = "mp3"
    stream_format: str | None = None


_decoder = msgspec.json.Decoder(SpeechRequest)


def read(body: bytes) -> SurfaceRequest:
    """Returns the request with its text as a message; `echo` is the content type of the answer. Raises
    ValidationError, which names the field."""
    fields = decoded(_decoder, body)
    refuse_chat_fields(fields, "speech", fallbacks=True)
    if fields.stream_format not in (None, "audio"):
        raise ValidationError("stream_format: speech cannot be streamed as events", code="unsupported_parameter")
    return SurfaceRequest(as_chat(fields, [fields.input], "input"), echo=MEDIA_TYPES[fields.response_format])
