"""Reads the request for an image (https://platform.openai.com/docs/api-reference/images/create)."""

from __future__ import annotations

import msgspec

from gateway.protocol.wire import Name
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import OperationFields, as_chat, decoded, refuse_chat_fields


class ImageRequest(OperationFields):
    model: Name
    prompt: str


_decoder = msgspec.json.Decoder(ImageRequest)


def read(body: bytes) -> SurfaceRequest:
    """Returns the request with its prompt as a message. Raises ValidationError, which names the field."""
    fields = decoded(_decoder, body)
    refuse_chat_fields(fields, "images", fallbacks=True)
    return SurfaceRequest(as_chat(fields, [fields.prompt], "prompt"))
