"""Reads the request of a moderation (https://platform.openai.com/docs/api-reference/moderations/create)."""

from __future__ import annotations

from typing import Any

import msgspec

from core.errors import ValidationError
from gateway.protocol.wire import Name
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import OperationFields, as_chat, decoded, refuse_chat_fields


class ModerationRequest(OperationFields):
    input: str | list[str | dict[str, Any]]
    model: Name = "omni-moderation-latest"


_decoder = msgspec.json.Decoder(ModerationRequest)


def read(body: bytes) -> SurfaceRequest:
    """Returns the request with a message for each text. Raises ValidationError, which names the field."""
    fields = decoded(_decoder, body)
    refuse_chat_fields(fields, "moderations", fallbacks=True)
    given = [fields.input] if isinstance(fields.input, str) else fields.input
    if not given:
        raise ValidationError("input: at least one input is required")
    texts = [one if isinstance(one, str) else str(one.get("text") or "") for one in given]
    return SurfaceRequest(as_chat(fields, texts, "input"))
