from __future__ import annotations

from dataclasses import replace

from integrations.providers.base import (
    NOTHING,
    ChatRequest,
    Credentials,
    Needs,
    ParsedResponse,
    StreamTranslator,
    UpstreamRequest,
)
from integrations.providers.mistral.request import build_body
from integrations.providers.mistral.response import with_details
from integrations.providers.mistral.stream import MistralStream
from integrations.providers.openai.adapter import OPENAI, OpenAIAdapter
from integrations.providers.openai.dialect import Dialect

# Only the traits of this dialect row are used, since `request.build_body` writes the body.
MISTRAL = replace(
    OPENAI,
    provider="mistral",
    title="Mistral",
    base_url="https://api.mistral.ai/v1",
    owned_by="mistralai",
    default_model="mistral-small-latest",
    functions="as_tools",
)


class MistralAdapter(OpenAIAdapter):
    def __init__(self, dialect: Dialect = MISTRAL) -> None:
        super().__init__(dialect)
        self.marks = (b"{",)  # Every body is read.

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        return NOTHING  # Mistral takes images and documents by address.

    def forwarded(self, request: ChatRequest) -> bytes | None:
        return None  # So is every answer.

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._endpoints.get(credentials)
        body, warnings = build_body(request, provider=self.provider)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, body, warnings)

    def parse_response(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        return super().parse_response(request, with_details(body))

    def stream(self, request: ChatRequest) -> StreamTranslator:
        return MistralStream(model=request.model, provider=self.provider, redact=self.redact, seed=request.body)


ADAPTER = MistralAdapter()
