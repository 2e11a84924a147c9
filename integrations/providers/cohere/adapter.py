from __future__ import annotations

from collections.abc import Mapping

from integrations.providers.base import (
    ChatRequest,
    Credentials,
    Needs,
    ParsedResponse,
    StreamTranslator,
    Traits,
    UpstreamRequest,
)
from integrations.providers.cohere.messages import needed_media
from integrations.providers.cohere.request import build_body
from integrations.providers.cohere.response import parse_response
from integrations.providers.cohere.stream import CohereStream
from integrations.providers.common.adapter import DialectAdapter
from integrations.providers.common.endpoints import USER_AGENT, Endpoint, PerCredentials
from integrations.providers.errors import FailureKind, ProviderError

COHERE = Traits(
    provider="cohere",
    title="Cohere",
    base_url="https://api.cohere.com/v2",
    owned_by="cohere",
    default_model="command-a-03-2025",
)
# Cohere answers 498 ("Invalid token") for a deny-listed token in the prompt, and 499 ("Client closed request") when
# something between the gateway and the model cancelled the request. https://docs.cohere.com/reference/errors
_DENY_LISTED, _GAVE_UP = 498, 499


class CohereAdapter(DialectAdapter):
    def __init__(self) -> None:
        self._endpoints = PerCredentials(_endpoint)
        super().__init__(COHERE, self._endpoints)

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        return needed_media(request)

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._endpoints.get(credentials)
        body, warnings = build_body(request, provider=self.provider)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, body, warnings)

    def endpoint_of(self, operation: str, credentials: Credentials) -> Endpoint:
        endpoint = self._endpoints.get(credentials)
        return Endpoint(endpoint.url.removesuffix("chat") + operation, endpoint.headers)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        return parse_response(request, body, provider=self.provider)

    def stream(self, request: ChatRequest) -> StreamTranslator:
        return CohereStream(model=request.model, provider=self.provider, redact=self.redact)

    def _failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        error = super()._failure(status, headers, body)
        if status == _DENY_LISTED:
            error.kind = FailureKind.CONTENT_FILTER
        elif status == _GAVE_UP:
            error.kind = FailureKind.UNAVAILABLE
        return error


def _endpoint(credentials: Credentials) -> Endpoint:
    """The base address may end in the version, as the gateway's default does, or not, as in the vendor's SDKs."""
    base_url = (credentials.base_url or COHERE.base_url).rstrip("/").removesuffix("/v2")
    headers = {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        "authorization": f"Bearer {credentials.secret}",
    }
    return Endpoint(f"{base_url}/v2/chat", headers)


ADAPTER = CohereAdapter()
