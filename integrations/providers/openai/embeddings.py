"""https://platform.openai.com/docs/api-reference/embeddings

The client's bytes are forwarded unchanged, and so is an answer in OpenAI's form.
"""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.base import ChatRequest, Credentials, ParsedResponse, UpstreamRequest
from integrations.providers.common.embeddings import (
    EmbeddingsForwarder,
    EmbeddingsRequest,
    Vector,
    answered,
    decode_request,
    estimated,
    in_format,
    prompt_usage,
    recorded,
)
from integrations.providers.common.failures import failure_in_body
from integrations.providers.common.forwarding import with_model
from integrations.providers.common.search import find
from integrations.providers.errors import ProviderError
from integrations.providers.openai import azure
from integrations.providers.openai.adapter import ADAPTER, OpenAIAdapter
from integrations.providers.openai.compatible import ADAPTERS, DIALECTS
from integrations.providers.usage import Usage

# OpenAI's models know no types of inputs, which clients of the Gemini API and of Cohere send with all models.
_WITHOUT_TYPES = frozenset({"openai", "azure_openai"})


class _Row(msgspec.Struct):
    embedding: msgspec.Raw
    index: int | None = None
    object: str = ""


class _Answer(msgspec.Struct):
    data: list[_Row]
    object: str = ""
    model: str = ""
    usage: dict[str, Any] | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Answer).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class OpenAIEmbeddings(EmbeddingsForwarder[OpenAIAdapter]):
    """The embeddings of one provider."""

    def __init__(self, adapter: OpenAIAdapter, *, max_inputs: int = 2048, floats_only: bool = False) -> None:
        super().__init__(adapter)
        self.max_inputs = max_inputs
        # OpenAI's SDKs send `base64` by themselves.
        self._floats_only = floats_only

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._dialect.endpoint_of("embeddings", request.model, credentials)
        body = with_model(request.body, request.model)
        if self._floats_only:
            body = _without(body, "encoding_format")
        if self.provider in _WITHOUT_TYPES and find(body, b'"input_type"') >= 0:
            body = _without(body, "input_type")
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, body)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        given = decode_request(request.body)
        answer = self._decoded(body)
        if len(answer.data) != len(given.inputs):
            raise self._unusable(f"the answer holds {len(answer.data)} embeddings of {len(given.inputs)} inputs")
        usage = prompt_usage(answer.usage)
        if usage is not None and _conforms(answer, given):
            return ParsedResponse(body, answer.model, "", usage, recorded(len(answer.data), answer.model, usage))
        try:
            vectors = [in_format(vector, given.encoding_format) for vector in _ordered(answer)]
        except msgspec.DecodeError as error:
            raise self._unusable(str(error)) from error
        return answered(vectors, answer.model or request.model, usage or estimated(given))

    def _read(self, request: ChatRequest, body: bytes) -> tuple[list[Vector], Usage | None]:
        answer = self._decoded(body)
        return _ordered(answer), prompt_usage(answer.usage)

    def _decoded(self, body: bytes) -> _Answer:
        try:
            answer = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._failure_in(body) from error
        if answer.error:
            raise self._failure_in(body)
        return answer

    def _failure_in(self, body: bytes) -> ProviderError:
        try:
            fields = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            fields = None
        if isinstance(fields, dict) and (fields.get("error") or fields.get("message")):
            return failure_in_body(fields, provider=self.provider)
        return self._unusable("the answer holds no embeddings")


def _conforms(answer: _Answer, given: EmbeddingsRequest) -> bool:
    first = b'"' if given.encoding_format == "base64" else b"["
    return answer.object == "list" and all(
        row.index == position and row.object == "embedding" and bytes(row.embedding).lstrip()[:1] == first
        for position, row in enumerate(answer.data)
    )


def _ordered(answer: _Answer) -> list[Vector]:
    rows = answer.data
    if all(row.index is not None for row in rows):
        rows = sorted(rows, key=lambda row: row.index or 0)
    return [bytes(row.embedding) for row in rows]


def _without(body: bytes, name: str) -> bytes:
    return msgspec.json.encode({key: value for key, value in _decode_fields(body).items() if key != name})


FORWARDERS = {
    "openai": OpenAIEmbeddings(ADAPTER),
    "azure_openai": OpenAIEmbeddings(azure.ADAPTER),
    **{
        row.provider: OpenAIEmbeddings(
            ADAPTERS[row.provider], max_inputs=row.embeddings, floats_only=row.float_embeddings
        )
        for row in DIALECTS
        if row.embeddings
    },
}
