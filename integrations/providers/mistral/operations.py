from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.base import ChatRequest, Credentials, ParsedResponse, UpstreamRequest
from integrations.providers.common.embeddings import decode_request
from integrations.providers.mistral.adapter import ADAPTER
from integrations.providers.openai.embeddings import OpenAIEmbeddings
from integrations.providers.openai.operations import TRANSCRIPTION_PATH, Moderations, TranscriptionsForwarder


class MistralEmbeddings(OpenAIEmbeddings):
    """Some fields have other names (https://docs.mistral.ai/api/endpoint/embeddings)."""

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        given = decode_request(request.body)
        endpoint = self._dialect.endpoint_of("embeddings", request.model, credentials)
        body: dict[str, Any] = {"model": request.model, "input": given.texts(self.provider)}
        if given.dimensions is not None:
            body["output_dimension"] = given.dimensions
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, msgspec.json.encode(body))


class MistralModerations(Moderations):
    """Mistral's answer (https://docs.mistral.ai/api/endpoint/classifiers) names categories but lacks the overall
    verdict that OpenAI's clients read."""

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        answer = super()._parse(request, body)
        fields = self._fields(body)
        for result in fields["results"]:
            if isinstance(result, dict) and isinstance(result.get("categories"), dict):
                result.setdefault("flagged", any(result["categories"].values()))
        return msgspec.structs.replace(answer, body=msgspec.json.encode(fields))


EMBEDDINGS = {"mistral": MistralEmbeddings(ADAPTER)}
MODERATIONS = {"mistral": MistralModerations(ADAPTER, "moderations")}
# https://docs.mistral.ai/api/endpoint/audio/transcriptions
TRANSCRIPTIONS = {"mistral": TranscriptionsForwarder(ADAPTER, TRANSCRIPTION_PATH)}
