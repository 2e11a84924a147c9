"""Reads the request of an embedding (https://platform.openai.com/docs/api-reference/embeddings/create)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from core.errors import ValidationError
from gateway.protocol.wire import Name, Word
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import NativeOnlySurface, OperationFields, Token, as_chat, decoded, refuse_chat_fields

MAX_INPUTS = 2048
"""The most inputs of one request, which is OpenAI's own bound."""


class EmbeddingRequest(OperationFields):
    model: Name
    input: str | list[str | Token | list[Token]]
    dimensions: Annotated[int, msgspec.Meta(ge=1, le=65_536)] | None = None
    encoding_format: Literal["float", "base64"] | None = None
    input_type: Word | None = None


_decoder = msgspec.json.Decoder(EmbeddingRequest)


def read(body: bytes) -> SurfaceRequest:
    """Returns the request with a message for each input. Raises ValidationError, which names the field."""
    fields = decoded(_decoder, body)
    refuse_chat_fields(fields, "embeddings", fallbacks=False)
    texts, has_tokens = _texts(fields.input)
    opaque = "input: token arrays cannot be read by this project's guardrails; send texts" if has_tokens else ""
    return SurfaceRequest(as_chat(fields, texts, "input"), opaque=opaque)


def _texts(given: str | list[Any]) -> tuple[list[str], bool]:
    """Returns the inputs as texts, with each token array as its JSON, and whether there are any token arrays. Raises
    ValidationError."""
    if isinstance(given, str):
        given = [given]
    kinds = {type(one) for one in given}
    if len(kinds) > 1:
        raise ValidationError("input: expected texts, tokens, or arrays of tokens, but not a mixture of them")
    if kinds == {int}:
        given, kinds = [given], {list}
    if len(given) > MAX_INPUTS:
        raise ValidationError(f"input: {len(given)} inputs, at most {MAX_INPUTS} are allowed")
    if not given:
        raise ValidationError("input: at least one input is required")
    for index, one in enumerate(given):
        if not one:
            raise ValidationError(f"input[{index}]: an input is empty" if len(given) > 1 else "input: it is empty")
    if kinds == {list}:
        return [msgspec.json.encode(one).decode() for one in given], True
    return given, False


SURFACE = NativeOnlySurface("embeddings", read)
