from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.base import ChatRequest
from integrations.providers.common.conversation import Conversation, Native, read_conversation
from integrations.providers.common.instructions import as_user
from integrations.providers.common.parameters import Mapped
from integrations.providers.google.field_names import spellings
from integrations.providers.google.media import RESOLUTIONS, is_native, to_fetch
from integrations.providers.google.messages import Writer
from integrations.providers.google.models import Model, model_named
from integrations.providers.google.parameters import generation_config
from integrations.providers.google.specifics import rebuild
from integrations.providers.google.tools import write_tools

_encode = msgspec.json.Encoder().encode
# Clients may send Google's safety settings and other fields of the body in Google's own form.
_NATIVE = spellings(("safetySettings", "cachedContent", "labels", "modelArmorConfig", "continuationToken"))
# Only Google's flex, priority and standard tiers have an equivalent
# (https://ai.google.dev/gemini-api/docs/flex-inference); OpenAI's other tiers are the provider's default.
_TIERS = ("flex", "priority", "standard")
_DEFAULT_TIERS = ("auto", "default")


def build_body(request: ChatRequest, *, provider: str, vertex: bool) -> tuple[bytes, tuple[str, ...]]:
    fields = _with_images(_with_google_extras(request.fields))
    mapped = Mapped(provider, fields, is_translated=request.is_translated)
    model = model_named(request.model)
    writer = Writer(model=model, fetched=request.media, vertex=vertex)
    body = _contents(_conversation(mapped, model), writer)
    mixes = model.signed_calls and not vertex
    if request.is_translated and not mixes and fields.get("tools") and fields.get("web_search_options") is not None:
        raise mapped.refuse("web_search_options", f"{request.model} does not search beside functions")
    if request.is_foreign and not model.signed_calls and fields.get("tools") and _asks_for_json(fields):
        # https://ai.google.dev/gemini-api/docs/structured-output: with tools from the third generation on.
        raise mapped.refuse("response_format", f"{request.model} answers in JSON or calls functions, not both")
    write_tools(mapped, body, mixes=mixes)
    config = generation_config(mapped, model)
    if config:
        body["generationConfig"] = config
    for name in fields:
        if name in _NATIVE and (value := mapped.take(name)) is not None:
            body[_NATIVE[name]] = value
    _tier(mapped, body)
    return _encode(body), mapped.warnings()


def _asks_for_json(fields: Mapping[str, Any]) -> bool:
    wanted = fields.get("response_format")
    return isinstance(wanted, Mapping) and wanted.get("type") in ("json_object", "json_schema")


def files_to_fetch(request: ChatRequest, *, vertex: bool) -> tuple[str, ...]:
    fields = _with_images(request.fields)
    if all(isinstance(message.get("content"), str | None) for message in fields["messages"]):
        return ()
    return to_fetch(read_conversation(fields, native=is_native).attachments(), vertex=vertex)


def _conversation(mapped: Mapped, model: Model) -> Conversation:
    """Turns mid-conversation instructions into marked turns of the user, as Gemini has no place for them; the preceding
    prompt stays unchanged and cached."""
    mapped.drop_names()
    conversation = as_user(read_conversation(mapped.fields, native=is_native, keep_places=True, rebuild=rebuild))
    if any(one.name and not isinstance(one, Native) for one in conversation.attachments()):
        mapped.drop("messages.file.filename")
    details = conversation.details()
    if details - RESOLUTIONS.keys() if model.resolutions else details:
        mapped.drop("messages.image_url.detail")
    return conversation


def _contents(conversation: Conversation, writer: Writer) -> dict[str, Any]:
    system = [{"text": part.text} for part in conversation.system if part.text]
    contents = writer.contents(conversation)
    if not contents and (not system or writer.model.instructions):
        # Google requires a turn and accepts an empty text in it, so that the instruction can stay a system instruction.
        contents = [{"role": "user", "parts": [{"text": ""}]}]
    if not system:
        return {"contents": contents}
    if not contents:
        return {"contents": [{"role": "user", "parts": system}]}
    if writer.model.instructions:
        return {"contents": contents, "systemInstruction": {"parts": system}}
    if contents[0]["role"] == "user":
        contents[0]["parts"] = system + contents[0]["parts"]
        return {"contents": contents}
    return {"contents": [{"role": "user", "parts": system}, *contents]}


def _tier(mapped: Mapped, body: dict[str, Any]) -> None:
    tier = mapped.take("service_tier")
    if tier in _TIERS:
        body["serviceTier"] = tier
    elif tier is not None and tier not in _DEFAULT_TIERS:
        mapped.drop(f"service_tier {tier!r}")


def _with_google_extras(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Adds `{"extra_body": {"google": {…}}}`, which Google's OpenAI-compatible endpoint takes
    (https://ai.google.dev/gemini-api/docs/openai#extra-body)."""
    extra = fields.get("extra_body")
    google = extra.get("google") if isinstance(extra, Mapping) else None
    if not isinstance(google, Mapping):
        return fields
    return {**{name: value for name, value in fields.items() if name != "extra_body"}, **google}


def _with_images(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The model's own images come back in `images`; they become content parts."""
    messages = fields["messages"]
    if not any(message.get("images") and message["role"] == "assistant" for message in messages):
        return fields
    return {**fields, "messages": [_with_images_in_content(message) for message in messages]}


def _with_images_in_content(message: Mapping[str, Any]) -> Mapping[str, Any]:
    images = message.get("images")
    if message["role"] != "assistant" or not isinstance(images, list):
        return message
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) and content else content or []
    return {**message, "content": [*parts, *images]}
