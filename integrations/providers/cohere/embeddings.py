"""Embeddings of Cohere (https://docs.cohere.com/reference/embed)."""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.base import ChatRequest, Credentials, UpstreamRequest
from integrations.providers.cohere.adapter import ADAPTER, CohereAdapter
from integrations.providers.common.embeddings import EmbeddingsForwarder, Vector, decode_request
from integrations.providers.usage import Usage

# Cohere's models ask what the texts are for; a client of OpenAI's protocol that does not say so stores documents.
_DOCUMENT = "search_document"


class _ByType(msgspec.Struct):
    float: list[msgspec.Raw]


class _Answer(msgspec.Struct):
    embeddings: _ByType
    meta: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Answer).decode


class CohereEmbeddings(EmbeddingsForwarder):
    max_inputs = 96

    def __init__(self, adapter: CohereAdapter) -> None:
        super().__init__(adapter)
        self._adapter = adapter

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        given = decode_request(request.body)
        endpoint = self._adapter.endpoint_of("embed", credentials)
        body: dict[str, Any] = {
            "model": request.model,
            "texts": given.texts(self.provider),
            "input_type": given.input_type or _DOCUMENT,
            "embedding_types": ["float"],
        }
        if given.dimensions is not None:
            body["output_dimension"] = given.dimensions
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, msgspec.json.encode(body))

    def _read(self, request: ChatRequest, body: bytes) -> tuple[list[Vector], Usage | None]:
        answer = _decode(body)
        return [bytes(vector) for vector in answer.embeddings.float], _usage(answer.meta)


def _usage(meta: dict[str, Any] | None) -> Usage | None:
    billed = (meta or {}).get("billed_units")
    tokens = billed.get("input_tokens") if isinstance(billed, dict) else None
    return Usage(prompt_tokens=int(tokens)) if isinstance(tokens, (int, float)) and tokens > 0 else None


FORWARDERS = {"cohere": CohereEmbeddings(ADAPTER)}
