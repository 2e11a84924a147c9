"""The adapters of Anthropic's Messages API: at the vendor, and in Microsoft Foundry at an Azure resource, with the
names of its deployments (https://platform.claude.com/docs/en/build-with-claude/claude-in-microsoft-foundry)."""

from __future__ import annotations

import re
from dataclasses import replace

from integrations.providers.anthropic.answer_stream import AnswerToolStream
from integrations.providers.anthropic.answer_tool import answers_by_tool
from integrations.providers.anthropic.hosts import OWN, VERTEX_AI, Host
from integrations.providers.anthropic.media import addresses_to_fetch
from integrations.providers.anthropic.request import build
from integrations.providers.anthropic.response import parse_response
from integrations.providers.anthropic.stream import AnthropicStream
from integrations.providers.base import (
    NOTHING,
    ChatRequest,
    Credentials,
    Needs,
    ParsedResponse,
    StreamTranslator,
    Traits,
    UpstreamRequest,
)
from integrations.providers.common.adapter import DialectAdapter
from integrations.providers.common.endpoints import USER_AGENT, Endpoint, PerCredentials
from integrations.providers.errors import incomplete

# The later version 2026-10-21 forbids the sampling parameters, which older models still have.
VERSION = "2023-06-01"

TRAITS = Traits(
    provider="anthropic",
    title="Anthropic",
    base_url="https://api.anthropic.com",
    owned_by="anthropic",
    default_model="claude-sonnet-5",
    # The header is described at https://platform.claude.com/docs/en/api/beta-headers
    forward_headers=("anthropic-beta",),
    needs_max_output=True,
    claude_blocks=("",),
)


class AnthropicAdapter(DialectAdapter):
    def __init__(self, traits: Traits = TRAITS, host: Host = OWN) -> None:
        self._host = host
        self._endpoints = PerCredentials(self._endpoint)
        super().__init__(traits, self._endpoints)

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        addresses = addresses_to_fetch(request, fetched_there=self._host.fetches)
        return Needs(media=addresses) if addresses else NOTHING

    def endpoint(self, credentials: Credentials) -> Endpoint:
        return self._endpoints.get(credentials)

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._endpoints.get(credentials)
        built = build(
            request, provider=self.provider, host=self._host, deployment=credentials.extra.get("deployment", "")
        )
        headers = endpoint.headers
        if built.betas:
            headers = {**headers, "anthropic-beta": ",".join(built.betas)}
        return UpstreamRequest("POST", endpoint.url, headers, built.body, built.warnings)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        return parse_response(request, body, provider=self.provider)

    def stream(self, request: ChatRequest) -> StreamTranslator:
        kind = AnswerToolStream if answers_by_tool(request) else AnthropicStream
        return kind(model=request.model, provider=self.provider, redact=self.redact)

    def _endpoint(self, credentials: Credentials) -> Endpoint:
        # The vendor's SDKs take the address without `/v1` and OpenAI's SDKs with it, so both forms are accepted.
        base_url = (credentials.base_url or self._traits.base_url).rstrip("/").removesuffix("/v1")
        headers = {
            "content-type": "application/json",
            "user-agent": USER_AGENT,
            "anthropic-version": VERSION,
            "x-api-key": credentials.secret,
        }
        return Endpoint(f"{base_url}/v1/messages", headers)


ADAPTER = AnthropicAdapter()
# The adapter of Vertex AI uses this one for the dialect and brings its own addresses and secrets.
ON_VERTEX = AnthropicAdapter(replace(TRAITS, provider="google_vertex"), VERTEX_AI)


_FOUNDRY = Traits(
    provider="azure_anthropic",
    title="Anthropic on Azure",
    base_url="",
    owned_by="anthropic",
    default_model="claude-sonnet-5",
    options=("deployment",),
    forward_headers=("anthropic-beta",),
    needs_max_output=True,
    claude_blocks=("",),
)
# A token of Microsoft Entra is a JWT, and no key of Azure begins like one.
_ENTRA_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]*")


class FoundryAdapter(AnthropicAdapter):
    def __init__(self) -> None:
        super().__init__(_FOUNDRY)

    def _endpoint(self, credentials: Credentials) -> Endpoint:
        """Returns the endpoint of a resource, whose address may have a path:
        `https://NAME.services.ai.azure.com/anthropic`. Raises ProviderError(CREDENTIALS) without an address."""
        base_url = credentials.base_url.rstrip("/").removesuffix("/v1/messages").removesuffix("/v1")
        if not base_url:
            raise incomplete(f"the {self.provider} integration has no base_url", self.provider)
        if not base_url.endswith("/anthropic"):
            base_url += "/anthropic"
        headers = {"content-type": "application/json", "user-agent": USER_AGENT, "anthropic-version": VERSION}
        return Endpoint(f"{base_url}/v1/messages", headers | _authorization(credentials.secret))


def _authorization(secret: str) -> dict[str, str]:
    """Returns the headers that carry the secret. The vendor's own client sends a key in both of these headers."""
    if _ENTRA_TOKEN.fullmatch(secret):
        return {"authorization": f"Bearer {secret}"}
    return {"x-api-key": secret, "api-key": secret}


FOUNDRY = FoundryAdapter()
