"""Reads the lists of models in the forms of OpenAI, of its imitators, of Anthropic, Google and Cohere; without I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from integrations.model_lists.listed import ListedModel
from integrations.pricing.entries import MODEL_LENGTH
from integrations.providers.errors import FailureKind, ProviderError

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
    """Returns the models of an answer, each once. Raises ProviderError when the answer lists none: a login page, a
    proxy and another service answer with 200 too."""
    try:
        decoded: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _unusable(provider, "the list of models is not JSON") from None
    rows = decoded if isinstance(decoded, list) else _rows(decoded)
    found = {model.id: model for row in rows if isinstance(row, dict) and (model := _model(row)) is not None}
    if not found:
        raise _unusable(provider, "the answer lists no models")
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
    """Returns False where the row says that the model answers no conversation."""
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
    """Returns the time in seconds since 1970 of a number or an ISO 8601 text; 0 for anything else."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError):
            return 0
    sensible = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**32
    return int(value) if sensible else 0


def _unusable(provider: str, problem: str) -> ProviderError:
    return ProviderError(problem, kind=FailureKind.UNUSABLE, provider=provider, status=200)
