"""Operations of Cohere beside chat: embeddings (https://docs.cohere.com/reference/embed) and the ranking of documents
(https://docs.cohere.com/reference/rerank)."""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.base import ChatRequest, Credentials, ParsedResponse, UpstreamRequest
from integrations.providers.cohere.adapter import ADAPTER, CohereAdapter
from integrations.providers.common.embeddings import EmbeddingsForwarder, Vector, decode_request
from integrations.providers.common.forwarder import OperationForwarder
from integrations.providers.usage import Usage

# Cohere's models ask what the texts are for; a client of OpenAI's protocol that does not say so stores documents.
_DOCUMENT = "search_document"


class _ByType(msgspec.Struct):
    float: list[msgspec.Raw]


class _Embedded(msgspec.Struct):
    embeddings: _ByType
    meta: dict[str, Any] | None = None


_decode_embedded = msgspec.json.Decoder(_Embedded).decode


class CohereEmbeddings(EmbeddingsForwarder[CohereAdapter]):
    max_inputs = 96

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        given = decode_request(request.body)
        endpoint = self._dialect.endpoint_of("embed", credentials)
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
        answer = _decode_embedded(body)
        return [bytes(vector) for vector in answer.embeddings.float], _embedded_usage(answer.meta)


def _embedded_usage(meta: dict[str, Any] | None) -> Usage | None:
    billed = (meta or {}).get("billed_units")
    tokens = billed.get("input_tokens") if isinstance(billed, dict) else None
    return Usage(prompt_tokens=int(tokens)) if isinstance(tokens, (int, float)) and tokens > 0 else None


EMBEDDINGS = {"cohere": CohereEmbeddings(ADAPTER)}


_FIELDS = ("query", "documents", "top_n", "max_tokens_per_doc")
# Four bytes for each token is the usual rule of thumb for text.
_BYTES_PER_TOKEN = 4


class _Billed(msgspec.Struct):
    search_units: float | None = None
    input_tokens: float | None = None


class _Meta(msgspec.Struct):
    billed_units: _Billed | None = None


class _Answer(msgspec.Struct):
    results: list[msgspec.Raw]
    meta: _Meta | None = None


_decode = msgspec.json.Decoder(_Answer).decode
_decode_request = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_documents = msgspec.json.Decoder(list[str | dict[str, msgspec.Raw]]).decode


class CohereRerank(OperationForwarder[CohereAdapter]):
    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._dialect.endpoint_of("rerank", credentials)
        given = _decode_request(request.body)
        body: dict[str, Any] = {"model": request.model, **{name: given[name] for name in _FIELDS if name in given}}
        body["documents"] = [_text(one) for one in _decode_documents(given["documents"])]
        left_out = sorted(given.keys() - {"model", "user", *_FIELDS})
        warnings = tuple(f"{name} is not known to cohere" for name in left_out)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, msgspec.json.encode(body), warnings)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        try:
            answer = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("the answer holds no results") from error
        billed = answer.meta.billed_units if answer.meta is not None else None
        return ParsedResponse(body, request.model, "", _usage(request, billed))


def _usage(request: ChatRequest, billed: _Billed | None) -> Usage | None:
    """Cohere bills newer models by tokens and older ones by searches, whose tokens are estimated."""
    if billed is None:
        return None
    if billed.input_tokens:
        return Usage(prompt_tokens=int(billed.input_tokens))
    tokens = -(-len(request.body) // _BYTES_PER_TOKEN)
    return Usage(prompt_tokens=tokens, searches=int(billed.search_units or 0), estimated=True)


def _text(document: str | dict[str, msgspec.Raw]) -> str:
    if isinstance(document, str):
        return document
    text = bytes(document.get("text", b""))
    return msgspec.json.decode(text, type=str) if text.startswith(b'"') else msgspec.json.encode(document).decode()


RERANK = {"cohere": CohereRerank(ADAPTER)}
