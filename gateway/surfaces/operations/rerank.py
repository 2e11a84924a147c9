"""Reads the request to rank documents (https://docs.cohere.com/reference/rerank)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from core.errors import ValidationError
from gateway.protocol.wire import Name
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import OperationFields, as_chat, decoded, refuse_chat_fields

MAX_DOCUMENTS = 1000


class RerankRequest(OperationFields):
    model: Name
    query: str
    documents: list[str | dict[str, msgspec.Raw]]
    top_n: Annotated[int, msgspec.Meta(ge=1)] | None = None


_decoder = msgspec.json.Decoder(RerankRequest)


def read(body: bytes) -> SurfaceRequest:
    """Returns the request with a message for the query and for each document. Raises ValidationError, which names the
    field."""
    fields = decoded(_decoder, body)
    refuse_chat_fields(fields, "rerank", fallbacks=True)
    if not 0 < len(fields.documents) <= MAX_DOCUMENTS:
        raise ValidationError(f"documents: {len(fields.documents)} documents, from 1 to {MAX_DOCUMENTS} are allowed")
    texts = [one if isinstance(one, str) else _text(one) for one in fields.documents]
    return SurfaceRequest(as_chat(fields, [fields.query, *texts], "documents"))


def _text(document: dict[str, msgspec.Raw]) -> str:
    text = bytes(document.get("text", b""))
    return msgspec.json.decode(text, type=str) if text.startswith(b'"') else msgspec.json.encode(document).decode()
