"""Embeddings of Mistral, which answers in OpenAI's form and names some fields of requests otherwise
(https://docs.mistral.ai/api/endpoint/embeddings)."""

from __future__ import annotations

from typing import Any

import msgspec
from typing_extensions import override

from integrations.providers.base import ChatRequest, Credentials, UpstreamRequest
from integrations.providers.common.embeddings import decode_request
from integrations.providers.mistral.adapter import ADAPTER
from integrations.providers.openai.embeddings import OpenAIEmbeddings


class MistralEmbeddings(OpenAIEmbeddings):
    @override
    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        given = decode_request(request.body)
        endpoint = self._adapter.endpoint_of("embeddings", request.model, credentials)
        body: dict[str, Any] = {"model": request.model, "input": given.texts(self.provider)}
        if given.dimensions is not None:
            body["output_dimension"] = given.dimensions
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, msgspec.json.encode(body))


FORWARDERS = {"mistral": MistralEmbeddings(ADAPTER)}
