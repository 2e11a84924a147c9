"""The cheapest call of each provider that needs a working credential, as data.

A call is built from the adapter's request for a chat, so address and headers are those of later traffic. A provider
that is not in `CALLS` speaks OpenAI's dialect and is tested by listing its models, which costs nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from integrations.providers.base import ChatRequest, Credentials, UpstreamRequest
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.openai.compatible import DIALECTS
from integrations.registry import adapter_for, default_model

_GREETING = "Hi"


@dataclass(frozen=True, slots=True)
class Call:
    """A call made from the request for a chat. `new_ending` replaces the `ending` of its address; None sends the chat
    itself, limited to one token. A `body` makes it a POST. A good answer has at least one of the fields in `holds`;
    with `lists` a JSON list is good as well."""

    description: str
    ending: str = ""
    new_ending: str | None = None
    body: Mapping[str, Any] | None = None
    holds: tuple[str, ...] = ("data",)
    lists: bool = False
    model: str = ""


MODELS = Call("list the models", r"/chat/completions$", "/models", lists=True)
_COMPLETION = Call("complete one token", holds=("choices",))
CALLS: Mapping[str, Call] = {
    # Anthropic's list of models: https://docs.anthropic.com/en/api/models-list
    "anthropic": Call("list the models", r"/v1/messages$", "/v1/models?limit=1"),
    # Foundry lists no models of Anthropic:
    # https://platform.claude.com/docs/en/build-with-claude/claude-in-microsoft-foundry
    "azure_anthropic": Call("complete one token", holds=("content",)),
    # In every layout the resource lists its models beside its deployments:
    # https://learn.microsoft.com/rest/api/azureopenai/models/list
    "azure_openai": Call(
        "list the models",
        r"(?:(?P<v1>/openai/v1)|/openai/deployments/[^?]+|/models)/chat/completions",
        "",
    ),
    # Google's list of models: https://ai.google.dev/api/models#method:-models.list
    "google": Call("list the models", r"/models/[^/]+:generateContent$", "/models?pageSize=1", holds=("models",)),
    # Vertex AI's counting of tokens is free, needs the same permissions as generating, and is one of the few calls of
    # express mode:
    # https://cloud.google.com/vertex-ai/generative-ai/docs/start/express-mode/vertex-ai-express-mode-api-reference
    "google_vertex": Call(
        "count the tokens of a word",
        r":generateContent$",
        ":countTokens",
        body={"contents": [{"role": "user", "parts": [{"text": _GREETING}]}]},
        holds=("totalTokens",),
    ),
    # Cohere's list of models: https://docs.cohere.com/reference/list-models
    "cohere": Call("list the models", r"/v2/chat$", "/v1/models?page_size=1", holds=("models",)),
    # OpenRouter's list of models needs no key, so the call asks for the key's own data:
    # https://openrouter.ai/docs/api-reference/get-current-api-key
    "openrouter": Call("describe the key", r"/chat/completions$", "/key"),
    **{row.provider: replace(_COMPLETION, model=row.trial_model) for row in DIALECTS if not row.list_needs_key},
}


def call_of(provider: str) -> Call:
    return CALLS.get(provider, MODELS)


def build(call: Call, credentials: Credentials, access_token: str = "") -> UpstreamRequest:
    chat = adapter_for(credentials.provider).build_request(_chat(call, credentials, access_token), credentials)
    if call.new_ending is None:
        return chat
    body = b"" if call.body is None else json.dumps(call.body).encode()
    headers = {name: value for name, value in chat.headers.items() if body or name != "content-type"}
    return UpstreamRequest("POST" if body else "GET", _address(call, chat.url), headers, body)


def chat_address(credentials: Credentials) -> str:
    chat = _chat(MODELS, credentials, "any")
    return adapter_for(credentials.provider).build_request(chat, credentials).url


def needs_token(credentials: Credentials) -> bool:
    return adapter_for(credentials.provider).needs(_chat(MODELS, credentials, ""), credentials).access_token


def _address(call: Call, chat_url: str) -> str:
    found = re.search(call.ending, chat_url)
    if found is None:
        raise ProviderError("the address does not have the provider's form", kind=FailureKind.NOT_FOUND)
    new_ending = call.new_ending or _azure_models(found)
    return chat_url[: found.start()] + new_ending + chat_url[found.end() :]


def _azure_models(found: re.Match[str]) -> str:
    return "/openai/v1/models" if found["v1"] else "/openai/models"


def _chat(call: Call, credentials: Credentials, access_token: str) -> ChatRequest:
    # A provider without a model of its own (any OpenAI-compatible server) gets a placeholder name, and its test makes
    # no completion.
    model = call.model or default_model(credentials.provider) or "any"
    fields = {"model": model, "messages": [{"role": "user", "content": _GREETING}], "max_tokens": 1}
    return ChatRequest(
        model=model, stream=False, body=json.dumps(fields).encode(), fields=fields, access_token=access_token
    )
