"""https://ai.google.dev/api/embeddings,
https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from integrations.providers.base import NOTHING, ChatRequest, Credentials, Needs, UpstreamRequest
from integrations.providers.common.embeddings import EmbeddingsForwarder, EmbeddingsRequest, Vector, decode_request
from integrations.providers.google.adapter import GEMINI, VERTEX, GoogleAdapter
from integrations.providers.google.endpoints import is_service_account
from integrations.providers.usage import Usage

# https://ai.google.dev/gemini-api/docs/embeddings#supported-task-types; other values are passed on as they are.
_TASKS = {
    "search_query": "RETRIEVAL_QUERY",
    "query": "RETRIEVAL_QUERY",
    "search_document": "RETRIEVAL_DOCUMENT",
    "document": "RETRIEVAL_DOCUMENT",
    "passage": "RETRIEVAL_DOCUMENT",
    "classification": "CLASSIFICATION",
    "clustering": "CLUSTERING",
}


# The models of Gemini that came before the method `embedContent` of Vertex AI.
_PREDICTED = ("gemini-embedding-001", "gemini-embedding-exp")


class _Values(msgspec.Struct):
    values: msgspec.Raw
    statistics: dict[str, Any] | None = None


class _Prediction(msgspec.Struct):
    embeddings: _Values


class _Answer(msgspec.Struct):
    """`embedding` is of embedContent, `embeddings` of batchEmbedContents, `predictions` of predict."""

    embedding: _Values | None = None
    embeddings: list[_Values] = []
    predictions: list[_Prediction] = []
    usageMetadata: dict[str, Any] | None = None  # Google's name of the field


_decode = msgspec.json.Decoder(_Answer).decode


class GeminiEmbeddings(EmbeddingsForwarder[GoogleAdapter]):
    """The embeddings of the Gemini API, which takes up to 100 texts at once."""

    max_inputs = 100

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        given = decode_request(request.body)
        endpoint = self._dialect.endpoint_of(":batchEmbedContents", request, credentials)
        options = _options(given)
        name = request.model if request.model.startswith(("models/", "tunedModels/")) else f"models/{request.model}"
        rows = [{"model": name, **_content(text), **options} for text in given.texts(self.provider)]
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, msgspec.json.encode({"requests": rows}))

    def _read(self, request: ChatRequest, body: bytes) -> tuple[list[Vector], Usage | None]:
        answer = _decode(body)
        rows = [prediction.embeddings for prediction in answer.predictions] or answer.embeddings
        if answer.embedding is not None:
            rows = [answer.embedding]
        return [bytes(row.values) for row in rows], _usage(answer, rows)


class VertexEmbeddings(GeminiEmbeddings):
    """`embedContent` takes one text, and so does `predict` for the first Gemini model.

    For older models `predict` takes 20,000 tokens, in texts of up to 2,048 each.
    """

    max_inputs = 8

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        return Needs(access_token=True) if is_service_account(credentials.secret) else NOTHING

    def inputs_at_once(self, request: ChatRequest) -> int:
        return 1 if "gemini" in request.model else self.max_inputs

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        given = decode_request(request.body)
        texts = given.texts(self.provider)
        name = request.model.rpartition("/")[2]
        if "gemini" not in name or name.startswith(_PREDICTED):
            method, body = ":predict", _predicted(given, texts)
        else:
            method, body = ":embedContent", _configured(given, texts[0])
        endpoint = self._dialect.endpoint_of(method, request, credentials)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, msgspec.json.encode(body))


def _content(text: str) -> dict[str, Any]:
    return {"content": {"parts": [{"text": text}]}}


def _configured(given: EmbeddingsRequest, text: str) -> dict[str, Any]:
    options = _options(given)
    return {**_content(text), "embedContentConfig": options} if options else _content(text)


def _predicted(given: EmbeddingsRequest, texts: Sequence[str]) -> dict[str, Any]:
    options = _options(given)
    dimensions = options.pop("outputDimensionality", None)
    task = {"task_type": options["taskType"]} if "taskType" in options else {}
    body: dict[str, Any] = {"instances": [{"content": text, **task} for text in texts]}
    return body if dimensions is None else {**body, "parameters": {"outputDimensionality": dimensions}}


def _options(given: EmbeddingsRequest) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if given.input_type:
        options["taskType"] = _TASKS.get(given.input_type.lower(), given.input_type)
    if given.dimensions is not None:
        options["outputDimensionality"] = given.dimensions
    return options


def _usage(answer: _Answer, rows: Sequence[_Values]) -> Usage | None:
    whole = _count((answer.usageMetadata or {}).get("promptTokenCount"))
    tokens = whole or sum(_count(_token_count(row.statistics or {})) for row in rows)
    return Usage(prompt_tokens=tokens) if tokens else None


def _token_count(statistics: dict[str, Any]) -> Any:
    return statistics.get("token_count", statistics.get("tokenCount"))


def _count(value: Any) -> int:
    # Vertex writes the counts of `predict` as floats.
    return int(value) if isinstance(value, (int, float)) and value > 0 else 0


FORWARDERS = {"google": GeminiEmbeddings(GEMINI), "google_vertex": VertexEmbeddings(VERTEX)}
