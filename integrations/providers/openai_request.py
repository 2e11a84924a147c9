"""The body that goes upstream: the client's own bytes unless something has to change."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from integrations.providers.base import ChatRequest
from integrations.providers.errors import FailureKind, ProviderError


class Documents(StrEnum):
    """What a provider takes for a `document_url` content part (the specification's; not of OpenAI's own dialect)."""

    PASS = "pass"  # noqa: S105 - not a password: the part goes out as it is, the server's model decides
    FILE_DATA = "file_data"  # a `file` part with the data URL inside; addresses are refused
    FILE_URL = "file_url"  # a `file` part, data URL or address
    PLAIN = "plain"  # `document_url` as a bare string
    REFUSE = "refuse"


class Thinking(StrEnum):
    """What a provider takes for the `thinking` field."""

    PASS = "pass"  # noqa: S105 - not a password: the field is known there, or ignored
    EFFORT = "effort"  # `reasoning_effort` on models that reason, nothing on others
    REASONING = "reasoning"  # OpenRouter's `reasoning` object
    DROP = "drop"  # unknown there and refused when sent


# The gateway's own fields, which it has acted on; never part of what a provider sees.
OWN_FIELDS = ("models", "provider", "prompt_config", "prompt_variables")
_INCLUDE_USAGE = msgspec.Raw(b'{"include_usage":true}')
_REASONING_MODELS = ("o1", "o3", "o4", "gpt-5", "gpt-6", "gpt-oss")
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def build_body(
    request: ChatRequest,
    *,
    provider: str,
    documents: Documents = Documents.PASS,
    thinking: Thinking = Thinking.PASS,
    stream_options: bool = True,
    model_in_body: bool = True,
) -> bytes:
    """Values that stay are copied as bytes, never decoded; `request.fields` is not looked at, since it may be lazy.

    Raises ProviderError(REJECTED).
    """
    raw = _decode(request.body)
    before = len(raw)
    for name in OWN_FIELDS:
        raw.pop(name, None)
    changed = len(raw) != before
    if model_in_body and raw.get("model") != (model := msgspec.Raw(_encode(request.model))):
        raw["model"] = model
        changed = True
    if request.stream and stream_options:
        raw["stream_options"] = _stream_options(raw.get("stream_options"))
        changed = True
    if thinking is not Thinking.PASS and "thinking" in raw:
        _translate_thinking(raw, thinking, request.model)
        changed = True
    if documents is not Documents.PASS and b'"document_url"' in request.body:
        messages = msgspec.json.decode(raw["messages"])
        raw["messages"] = msgspec.Raw(_encode(_with_documents(messages, documents, provider)))
        changed = True
    return _encode(raw) if changed else request.body


def _stream_options(raw: msgspec.Raw | None) -> msgspec.Raw:
    """Usage is always asked for; the client's other options stay."""
    sent = None if raw is None else msgspec.json.decode(raw)
    if not isinstance(sent, Mapping) or not sent:
        return _INCLUDE_USAGE
    return msgspec.Raw(_encode({**sent, "include_usage": True}))


def _translate_thinking(raw: dict[str, msgspec.Raw], thinking: Thinking, model: str) -> None:
    wish = msgspec.json.decode(raw.pop("thinking"))
    if not isinstance(wish, Mapping) or wish.get("type") == "disabled":
        return
    budget = wish.get("budget_tokens")
    if thinking is Thinking.REASONING and "reasoning" not in raw:
        # https://openrouter.ai/docs/use-cases/reasoning-tokens
        raw["reasoning"] = msgspec.Raw(_encode({"max_tokens": budget} if budget else {"enabled": True}))
    elif thinking is Thinking.EFFORT and "reasoning_effort" not in raw and model.startswith(_REASONING_MODELS):
        raw["reasoning_effort"] = msgspec.Raw(_encode(_effort(budget)))


def _effort(budget: Any) -> str:
    """OpenAI takes a level, not a count; the borders are the halves of the usual budgets 1k, 8k, 24k."""
    if not isinstance(budget, int):
        return "medium"
    if budget <= 4096:
        return "low"
    return "medium" if budget <= 16384 else "high"


def _with_documents(messages: Any, documents: Documents, provider: str) -> list[Any]:
    return [_translated_message(message, documents, provider) for message in messages]


def _translated_message(message: Any, documents: Documents, provider: str) -> Any:
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(content, list):
        return message
    return {**message, "content": [_translated_part(part, documents, provider) for part in content]}


def _translated_part(part: Any, documents: Documents, provider: str) -> Any:
    if not isinstance(part, Mapping) or part.get("type") != "document_url":
        return part
    document = part.get("document_url")
    url = document.get("url") if isinstance(document, Mapping) else document
    if not isinstance(url, str):
        raise _rejected("document_url needs an object with a url", provider)
    if documents is Documents.REFUSE:
        raise _rejected(f"{provider} does not take documents", provider)
    if documents is Documents.PLAIN:
        # https://docs.mistral.ai/capabilities/document_ai/document_qna
        return {"type": "document_url", "document_url": url}
    if documents is Documents.FILE_DATA and not url.startswith("data:"):
        # https://platform.openai.com/docs/guides/pdf-files: chat completions take file data or an uploaded file's id.
        raise _rejected(f"{provider} takes documents as data URLs only", provider)
    return {"type": "file", "file": {"filename": _file_name(url), "file_data": url}}


def _file_name(url: str) -> str:
    if url.startswith("data:"):
        return "document.pdf" if url.startswith("data:application/pdf") else "document"
    return url.partition("?")[0].rpartition("/")[2] or "document"


def _rejected(message: str, provider: str) -> ProviderError:
    return ProviderError(message, kind=FailureKind.REJECTED, provider=provider)
