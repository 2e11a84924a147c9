"""The adapter of Claude in Microsoft Foundry: the Messages API at an Azure resource, with the names of its deployments.
https://platform.claude.com/docs/en/build-with-claude/claude-in-microsoft-foundry"""

from __future__ import annotations

import re

from integrations.providers.anthropic.adapter import VERSION, AnthropicAdapter
from integrations.providers.base import Credentials, Traits
from integrations.providers.common.endpoints import USER_AGENT, Endpoint
from integrations.providers.errors import FailureKind, ProviderError

TRAITS = Traits(
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
        super().__init__(TRAITS)

    def _endpoint(self, credentials: Credentials) -> Endpoint:
        """Returns the endpoint of a resource, whose address may have a path:
        `https://NAME.services.ai.azure.com/anthropic`. Raises ProviderError(CREDENTIALS) without an address."""
        base_url = credentials.base_url.rstrip("/").removesuffix("/v1/messages").removesuffix("/v1")
        if not base_url:
            problem = f"the {self.provider} integration has no base_url"
            raise ProviderError(problem, kind=FailureKind.CREDENTIALS, provider=self.provider)
        if not base_url.endswith("/anthropic"):
            base_url += "/anthropic"
        headers = {"content-type": "application/json", "user-agent": USER_AGENT, "anthropic-version": VERSION}
        return Endpoint(f"{base_url}/v1/messages", headers | _authorization(credentials.secret))


def _authorization(secret: str) -> dict[str, str]:
    """Returns the headers that carry the secret. The vendor's own client sends a key in both of these headers."""
    if _ENTRA_TOKEN.fullmatch(secret):
        return {"authorization": f"Bearer {secret}"}
    return {"x-api-key": secret, "api-key": secret}


ADAPTER = FoundryAdapter()
