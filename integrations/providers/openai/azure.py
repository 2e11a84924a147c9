"""Azure OpenAI: the OpenAI dialect under a resource's own address, with a key header, a deployment and an API version.
https://learn.microsoft.com/azure/ai-services/openai/reference

The integration's `base_url` shows which of three layouts applies: `https://NAME.openai.azure.com` (deployment in the
path), `…/openai/v1` (model in the body, no version), and `https://NAME.services.ai.azure.com/models` (Foundry models:
model in the body, with a version).
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from integrations.providers.base import ChatRequest, Credentials, UpstreamRequest
from integrations.providers.common.endpoints import USER_AGENT, Endpoint
from integrations.providers.errors import incomplete, no_role
from integrations.providers.openai.adapter import OPENAI, OpenAIAdapter
from integrations.providers.openai.dialect import OPENAI_PARAMETERS

DEFAULT_API_VERSION = "2024-10-21"
# Azure's streams report usage from API version 2024-09-01; earlier ones refuse the option
# (https://learn.microsoft.com/azure/ai-services/openai/api-version-lifecycle).
_STREAM_OPTIONS_SINCE = "2024-09-01"
_DEPLOYMENT = "{deployment}"

AZURE_OPENAI = replace(
    OPENAI,
    provider="azure_openai",
    title="Azure OpenAI",
    base_url="",
    forward_headers=(),
    options=("api_version", "deployment", "responses_models", "credentials"),
    parameters=OPENAI_PARAMETERS | {"data_sources"},
)


class AzureOpenAIAdapter(OpenAIAdapter):
    def __init__(self) -> None:
        super().__init__(AZURE_OPENAI)

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._endpoints.get(credentials)
        in_path = _DEPLOYMENT in endpoint.url
        body, warnings = self._body.build(
            request, stream_options=not in_path or _version(credentials)[:10] >= _STREAM_OPTIONS_SINCE
        )
        url = endpoint.url
        if in_path:
            deployment = credentials.extra.get("deployment") or request.model
            url = url.replace(_DEPLOYMENT, quote(deployment, safe=""))
        return UpstreamRequest("POST", url, endpoint.headers, body, warnings)

    def endpoint_of(self, operation: str, model: str, credentials: Credentials) -> Endpoint:
        endpoint = super().endpoint_of(operation, model, credentials)
        deployment = quote(credentials.extra.get("deployment") or model, safe="")
        return Endpoint(endpoint.url.replace(_DEPLOYMENT, deployment), endpoint.headers)

    def _endpoint(self, credentials: Credentials) -> Endpoint:
        base_url = credentials.base_url.rstrip("/")
        if not base_url:
            raise incomplete("the azure_openai integration has no base_url", self.provider)
        headers = {"content-type": "application/json", "user-agent": USER_AGENT, **_authorization(credentials)}
        version = quote(_version(credentials))
        if base_url.endswith("/openai/v1"):
            return Endpoint(f"{base_url}/chat/completions", headers)
        if base_url.endswith("/models"):
            # Without the header `extra-parameters` Azure refuses parameters beside the common ones
            # (https://learn.microsoft.com/rest/api/aifoundry/model-inference/get-chat-completions/get-chat-completions).
            headers["extra-parameters"] = "pass-through"
            return Endpoint(f"{base_url}/chat/completions?api-version={version}", headers)
        if "/openai/deployments/" not in base_url:
            base_url = f"{base_url.removesuffix('/openai')}/openai/deployments/{_DEPLOYMENT}"
        return Endpoint(f"{base_url}/chat/completions?api-version={version}", headers)


def _authorization(credentials: Credentials) -> dict[str, str]:
    if not credentials.is_ambient:
        return {"api-key": credentials.secret}
    if not credentials.secret:
        raise no_role(credentials.provider)
    return {"authorization": f"Bearer {credentials.secret}"}


def _version(credentials: Credentials) -> str:
    return credentials.extra.get("api_version") or DEFAULT_API_VERSION


ADAPTER = AzureOpenAIAdapter()
