"""Azure OpenAI: the OpenAI dialect under a resource's own address, with a key header, a deployment and an API version.

https://learn.microsoft.com/azure/ai-services/openai/reference. Three layouts, told by the integration's `base_url`:
`https://NAME.openai.azure.com` (deployment in the path), `…/openai/v1` (model in the body, no version), and
`https://NAME.services.ai.azure.com/models` (Foundry models: model in the body, with a version).
"""

from __future__ import annotations

from urllib.parse import quote

from typing_extensions import override

from integrations.providers.base import ChatRequest, Credentials, UpstreamRequest
from integrations.providers.endpoints import USER_AGENT, Endpoint
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.openai import Dialect, OpenAIAdapter
from integrations.providers.openai_request import Documents, Thinking, build_body

DEFAULT_API_VERSION = "2024-10-21"
_DEPLOYMENT = "{deployment}"

AZURE_OPENAI = Dialect(
    provider="azure_openai",
    base_url="",
    owned_by="openai",
    default_model="gpt-4o-mini",
    documents=Documents.FILE_DATA,
    thinking=Thinking.EFFORT,
    options=("api_version", "deployment"),
)


class AzureOpenAIAdapter(OpenAIAdapter):
    def __init__(self) -> None:
        super().__init__(AZURE_OPENAI)

    @override
    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._endpoints.get(credentials)
        body = build_body(
            request, provider=self.provider, documents=self.dialect.documents, thinking=self.dialect.thinking
        )
        deployment = credentials.extra.get("deployment") or request.model
        url = endpoint.url.replace(_DEPLOYMENT, quote(deployment, safe=""))
        return UpstreamRequest("POST", url, endpoint.headers, body)

    @override
    def _endpoint(self, credentials: Credentials) -> Endpoint:
        base_url = credentials.base_url.rstrip("/")
        if not base_url:
            raise ProviderError(
                "the azure_openai integration has no base_url", kind=FailureKind.CREDENTIALS, provider=self.provider
            )
        headers = {"content-type": "application/json", "user-agent": USER_AGENT, "api-key": credentials.secret}
        version = credentials.extra.get("api_version") or DEFAULT_API_VERSION
        if base_url.endswith("/openai/v1"):
            return Endpoint(f"{base_url}/chat/completions", headers)
        if base_url.endswith("/models"):
            return Endpoint(f"{base_url}/chat/completions?api-version={quote(version)}", headers)
        if "/openai/deployments/" not in base_url:
            base_url = f"{base_url.removesuffix('/openai')}/openai/deployments/{_DEPLOYMENT}"
        return Endpoint(f"{base_url}/chat/completions?api-version={quote(version)}", headers)


ADAPTER = AzureOpenAIAdapter()
