"""Embeddings of the providers that speak OpenAI's dialect (https://platform.openai.com/docs/api-reference/embeddings).

The client's bytes are forwarded as they came, and so is an answer that has OpenAI's form.
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
from integrations.providers.openai.compatible import ADAPTERS
from integrations.providers.usage import Usage

# The vendors of the dialect that document the endpoint `/embeddings`, each with the most inputs of one request where
# that is less than OpenAI's 2048. A vendor that is not here has no embeddings, or has them in a form of its own.
MAX_INPUTS = {
    "bigmodel": 64,  # https://docs.bigmodel.cn/cn/guide/models/embedding/embedding-3
    "cloudflare": 100,  # https://developers.cloudflare.com/workers-ai/configuration/open-ai-compatibility/
    "dashscope": 10,  # https://help.aliyun.com/zh/model-studio/text-embedding-synchronous-api
    "databricks": 150,  # https://docs.databricks.com/aws/en/machine-learning/model-serving/query-embedding-models
    "deepinfra": 1024,  # https://deepinfra.com/docs/advanced/embeddings
    "fireworks": 2048,  # https://docs.fireworks.ai/guides/querying-embeddings-models
    "github": 2048,  # https://docs.github.com/en/rest/models/embeddings
    "morph": 2048,  # https://docs.morphllm.com/api-reference/endpoint/embedding
    "nebius": 2048,  # https://docs.studio.nebius.com/inference/embeddings
    "novita": 2048,  # https://novita.ai/docs/api-reference/model-apis-llm-create-embeddings
    "nvidia": 2048,  # https://docs.nvidia.com/nim/nemo-retriever/text-embedding/latest/reference.html
    "ollama": 2048,  # https://docs.ollama.com/api/openai-compatibility
    "openai_compatible": 2048,
    "openrouter": 2048,  # https://openrouter.ai/docs/api-reference/embeddings
    "ovhcloud": 2048,  # https://endpoints.ai.cloud.ovh.net
    "sambanova": 2048,  # https://docs.sambanova.ai/cloud/docs/capabilities/embeddings
    "sandbox": 2048,
    "scaleway": 2048,  # https://www.scaleway.com/en/docs/generative-apis/how-to/query-embedding-models/
    "siliconflow": 32,  # https://docs.siliconflow.com/en/api-reference/embeddings/create-embeddings
    "together": 2048,  # https://docs.together.ai/docs/embeddings-overview
    "upstage": 100,  # https://console.upstage.ai/docs/capabilities/embeddings
    "venice": 2048,  # https://docs.venice.ai/api-reference/endpoint/embeddings/generate
    "vercel_ai_gateway": 2048,  # https://vercel.com/docs/ai-gateway/openai-compat
    "vllm": 2048,  # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
    "volcengine": 256,  # https://www.volcengine.com/docs/82379/1302003
}
# These vendors do not document `encoding_format`, or no value of it but `float`; OpenAI's SDKs send `base64` by
# themselves.
FLOATS_ONLY = frozenset({"bigmodel", "cloudflare", "dashscope", "databricks", "sambanova", "upstage"})
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


def _without_type(body: bytes) -> bytes:
    return msgspec.json.encode({name: raw for name, raw in _decode_fields(body).items() if name != "input_type"})


class OpenAIEmbeddings(EmbeddingsForwarder):
    """The embeddings of one provider."""

    def __init__(self, adapter: OpenAIAdapter, *, max_inputs: int = 2048) -> None:
        super().__init__(adapter)
        self._adapter = adapter
        self.max_inputs = max_inputs
        self._floats_only = adapter.provider in FLOATS_ONLY

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._adapter.endpoint_of("embeddings", request.model, credentials)
        body = with_model(request.body, request.model)
        if self._floats_only:
            body = _without_format(body)
        if self.provider in _WITHOUT_TYPES and find(body, b'"input_type"') >= 0:
            body = _without_type(body)
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


def _without_format(body: bytes) -> bytes:
    fields = _decode_fields(body)
    return msgspec.json.encode({name: value for name, value in fields.items() if name != "encoding_format"})


FORWARDERS = {
    "openai": OpenAIEmbeddings(ADAPTER),
    "azure_openai": OpenAIEmbeddings(azure.ADAPTER),
    **{name: OpenAIEmbeddings(ADAPTERS[name], max_inputs=most) for name, most in MAX_INPUTS.items()},
}
