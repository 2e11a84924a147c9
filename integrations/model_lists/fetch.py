"""Reads a provider's list of models. Blocks: for tasks, never for the event loop."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from integrations.connectivity.bedrock_models import list_models
from integrations.connectivity.calls import MODELS, Call, build, needs_token
from integrations.connectivity.exchange import HttpAnswer, Sender
from integrations.model_lists.listed import ListedModel
from integrations.pricing.entries import MODEL_LENGTH
from integrations.providers.additions import with_headers
from integrations.providers.base import Credentials, UpstreamRequest
from integrations.providers.errors import unusable
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


MAX_MODELS = 5000
_MAX_TOKENS = 100_000_000

# The fields in which providers write the tokens of the context window: Groq, OpenRouter and Together, Cohere, Mistral,
# vLLM, Google, Anthropic.
_CONTEXT = ("context_window", "context_length", "max_context_length", "max_model_len", "inputTokenLimit",
            "max_input_tokens")  # fmt: skip
_OUTPUT = ("max_completion_tokens", "max_output_tokens", "outputTokenLimit", "max_tokens")
# Groq marks models that it has switched off by `active`, Mistral those that it has archived.
_OFF = (("active", False), ("archived", True))
# Together's kinds of models that answer a conversation: https://docs.together.ai/reference/models
_CONVERSING_TYPES = frozenset({"chat", "language", "code", "base", "fine-tuned", "model"})


def parse_list(provider: str, body: bytes) -> tuple[ListedModel, ...]:
    """Returns each model once. Raises ProviderError if the answer lists none: a login page, a proxy and another service
    answer with 200 too."""
    try:
        decoded: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise unusable("the list of models is not JSON", provider) from None
    rows = decoded if isinstance(decoded, list) else _rows(decoded)
    found = {model.id: model for row in rows if isinstance(row, dict) and (model := _model(row)) is not None}
    if not found:
        raise unusable("the answer lists no models", provider)
    return tuple(found.values())[:MAX_MODELS]


def _rows(decoded: Any) -> list[Any]:
    if not isinstance(decoded, dict):
        return []
    return next((rows for name in ("data", "models") if isinstance(rows := decoded.get(name), list)), [])


def _model(row: Mapping[str, Any]) -> ListedModel | None:
    name = row.get("id") or row.get("name")
    if not isinstance(name, str) or any(row.get(field) is value for field, value in _OFF):
        return None
    name = name.removeprefix("models/")
    if not name or len(name) > MODEL_LENGTH or not name.isprintable() or " " in name:
        return None
    shown = next((text for key in ("display_name", "displayName", "name") if isinstance(text := row.get(key), str)), "")
    top = row.get("top_provider")
    return ListedModel(
        id=name,
        name=shown[:MODEL_LENGTH] if shown.removeprefix("models/") != name else "",
        created=_seconds(row.get("created") or row.get("created_at")),
        context_window=_tokens(row, _CONTEXT),
        max_output_tokens=_tokens(top, _OUTPUT) if isinstance(top, dict) else _tokens(row, _OUTPUT),
        converses=_converses(row),
    )


def _converses(row: Mapping[str, Any]) -> bool:
    methods, endpoints = row.get("supportedGenerationMethods"), row.get("endpoints")
    if isinstance(methods, list):
        return "generateContent" in methods
    if isinstance(endpoints, list):
        return "chat" in endpoints
    capabilities, architecture = row.get("capabilities"), row.get("architecture")
    if isinstance(capabilities, dict) and isinstance(capabilities.get("completion_chat"), bool):
        return capabilities["completion_chat"] is True
    if isinstance(architecture, dict) and isinstance(architecture.get("output_modalities"), list):
        return "text" in architecture["output_modalities"]
    kind = row.get("type")
    return not isinstance(kind, str) or kind in _CONVERSING_TYPES


def _tokens(row: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = row.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_TOKENS:
            return value
    return None


def _seconds(value: Any) -> int:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError):
            return 0
    sensible = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**32
    return int(value) if sensible else 0


def fetch_list(credentials: Credentials, sender: Sender) -> tuple[ListedModel, ...]:
    """Requests one page, which every provider allows to hold all models. Raises ProviderError, NoAnswerError."""

    def send(request: UpstreamRequest) -> HttpAnswer:
        return sender.send(with_headers(request, credentials))

    if credentials.provider == _BEDROCK:
        try:
            return tuple(ListedModel(model.id, model.name) for model in list_models(credentials, send=send))
        except (ValueError, TypeError, LookupError, AttributeError):
            # botocore lets these through when an answer is JSON of another shape than AWS's.
            raise unusable("the answer lists no models", _BEDROCK) from None
    token = fetch_token(credentials, allow_private=sender.allow_private).value if needs_token(credentials) else ""
    answer = send(build(_CALLS.get(credentials.provider, MODELS), credentials, token))
    if not 200 <= answer.status < 300:
        raise adapter_for(credentials.provider).classify_failure(answer.status, answer.headers, answer.body)
    return parse_list(credentials.provider, answer.body)
