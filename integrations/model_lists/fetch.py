"""Reads a provider's list of models from the provider. The functions block: they are for tasks, never for the event
loop."""

from __future__ import annotations

from integrations.connectivity.bedrock_models import list_models
from integrations.connectivity.calls import MODELS, Call, build, needs_token
from integrations.connectivity.exchange import HttpAnswer, Sender
from integrations.model_lists.listed import ListedModel
from integrations.model_lists.parse import parse_list
from integrations.providers.additions import with_headers
from integrations.providers.base import Credentials, UpstreamRequest
from integrations.providers.errors import FailureKind, ProviderError
from integrations.registry import adapter_for
from integrations.transport.access_tokens import fetch_token

WITHOUT_LIST = ("google_vertex", "azure_openai", "azure_anthropic", "sandbox")
"""The providers whose own list is not read: Vertex AI and Foundry have none, Azure lists models that are not deployed,
and the sandbox lists models that fail on purpose."""

_BEDROCK = "bedrock"
# Providers of OpenAI's dialect that document no list are asked in the same way; without an answer the catalogs count.
_CALLS = {
    # https://platform.claude.com/docs/en/api/models-list
    "anthropic": Call("list the models", r"/v1/messages$", "/v1/models?limit=1000"),
    # https://ai.google.dev/api/models#method:-models.list
    "google": Call("list the models", r"/models/[^/]+:generateContent$", "/models?pageSize=1000"),
    # https://docs.cohere.com/reference/list-models
    "cohere": Call("list the models", r"/v2/chat$", "/v1/models?page_size=1000"),
}


def fetch_list(credentials: Credentials, sender: Sender) -> tuple[ListedModel, ...]:
    """Returns the models of one page, which every provider allows to hold all of them. Raises ProviderError and
    NoAnswerError."""

    def send(request: UpstreamRequest) -> HttpAnswer:
        return sender.send(with_headers(request, credentials))

    if credentials.provider == _BEDROCK:
        try:
            return tuple(ListedModel(model.id, model.name) for model in list_models(credentials, send=send))
        except (ValueError, TypeError, LookupError, AttributeError):
            # botocore lets these through when an answer is JSON of another shape than AWS's.
            raise ProviderError("the answer lists no models", kind=FailureKind.UNUSABLE, provider=_BEDROCK) from None
    token = fetch_token(credentials, allow_private=sender.allow_private).value if needs_token(credentials) else ""
    answer = send(build(_CALLS.get(credentials.provider, MODELS), credentials, token))
    if not 200 <= answer.status < 300:
        raise adapter_for(credentials.provider).classify_failure(answer.status, answer.headers, answer.body)
    return parse_list(credentials.provider, answer.body)
