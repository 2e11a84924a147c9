"""Embeddings of Bedrock by InvokeModel, whose body has each vendor's form: Amazon's Titan
(https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html) and Cohere
(https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-embed.html)."""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.base import ChatRequest, Credentials, UpstreamRequest
from integrations.providers.bedrock.adapter import ADAPTER, BedrockAdapter
from integrations.providers.common.embeddings import EmbeddingsForwarder, EmbeddingsRequest, Vector, decode_request
from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.usage import Usage

_TITAN, _TITAN_IMAGE, _TITAN_V2 = "amazon.titan-embed", "amazon.titan-embed-image", "amazon.titan-embed-text-v2"
_COHERE, _COHERE_V3 = "cohere.embed", ("cohere.embed-english-v3", "cohere.embed-multilingual-v3")
_DOCUMENT = "search_document"


class _Floats(msgspec.Struct):
    float: list[msgspec.Raw]


class _Titan(msgspec.Struct):
    embedding: msgspec.Raw
    inputTextTokenCount: int = 0  # Amazon's name of the field


class _Cohere(msgspec.Struct):
    embeddings: list[msgspec.Raw] | _Floats


_decode_titan = msgspec.json.Decoder(_Titan).decode
_decode_cohere = msgspec.json.Decoder(_Cohere).decode


class BedrockEmbeddings(EmbeddingsForwarder[BedrockAdapter]):
    """Titan takes one text at a time and counts its tokens; Cohere takes 96 and leaves them out of its answer."""

    max_inputs = 96

    def serves(self, model: str) -> bool:
        return _TITAN in model or _COHERE in model

    def inputs_at_once(self, request: ChatRequest) -> int:
        return 1 if _TITAN in request.model else self.max_inputs

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        given = decode_request(request.body)
        body = _of_titan(given, request.model) if _TITAN in request.model else _of_cohere(given, request.model)
        return self._dialect.signed(request.model, "invoke", msgspec.json.encode(body), credentials, stream=False)

    def _read(self, request: ChatRequest, body: bytes) -> tuple[list[Vector], Usage | None]:
        if _TITAN in request.model:
            titan = _decode_titan(body)
            count = titan.inputTextTokenCount
            return [bytes(titan.embedding)], Usage(prompt_tokens=count) if count > 0 else None
        found = _decode_cohere(body).embeddings
        rows = found.float if isinstance(found, _Floats) else found
        return [bytes(row) for row in rows], None


def _of_titan(given: EmbeddingsRequest, model: str) -> dict[str, Any]:
    (text,) = given.texts("bedrock")
    body: dict[str, Any] = {"inputText": text}
    if given.dimensions is None:
        return body
    if _TITAN_IMAGE in model:
        return {**body, "embeddingConfig": {"outputEmbeddingLength": given.dimensions}}
    if _TITAN_V2 in model:
        return {**body, "dimensions": given.dimensions}
    raise _fixed()


def _of_cohere(given: EmbeddingsRequest, model: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "texts": given.texts("bedrock"),
        "input_type": given.input_type or _DOCUMENT,
        "embedding_types": ["float"],
    }
    if given.dimensions is None:
        return body
    if any(name in model for name in _COHERE_V3):
        raise _fixed()
    return {**body, "output_dimension": given.dimensions}


def _fixed() -> UnsupportedParameterError:
    return UnsupportedParameterError("dimensions", "the vectors of this model have one length", provider="bedrock")


FORWARDERS = {"bedrock": BedrockEmbeddings(ADAPTER)}
