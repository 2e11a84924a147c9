"""Sends chat completions by the Responses API: some models accept tools with reasoning only there, and get their own
reasoning back in every later request.

The body is first fitted as a chat completion, so that both ways share the rules for parameters and messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec

from integrations.providers.base import (
    NOTHING,
    ChatRequest,
    Credentials,
    Needs,
    ParsedResponse,
    StreamTranslator,
    UpstreamRequest,
)
from integrations.providers.common.parameters import THINKING_OFF
from integrations.providers.common.search import find
from integrations.providers.errors import ProviderError
from integrations.providers.given import NOTHING_GIVEN
from integrations.providers.openai.adapter import OpenAIAdapter
from integrations.providers.openai.dialect import Dialect, is_one_of
from integrations.providers.openai.request import BodyBuilder
from integrations.providers.openai.responses import SPEAKERS, ResponsesForwarder
from integrations.providers.openai.responses_chat import chat_completion
from integrations.providers.openai.responses_request import kind_of_answer, responses_body
from integrations.providers.openai.responses_stream import ResponsesStream

# Only the vendor that wrote reasoning can read it, and these are OpenRouter's names for what each vendor writes:
# https://openrouter.ai/docs/use-cases/reasoning-tokens
_FORMATS = {
    "openai": "openai-responses-v1",
    "azure_openai": "azure-openai-responses-v1",
    "xai": "xai-responses-v1",
}
# Chat completions answer for these: "This model is only supported in v1/responses and not in v1/chat/completions"
# (https://github.com/aaif-goose/goose/issues/2564, https://platform.openai.com/docs/models).
_ONLY_RESPONSES = re.compile(r"-(?:codex|pro)(?:-|$)|^codex-")
_MODELS = "responses_models"
_HIDDEN = "omitted"
# Clients of Gemini's API say in this field whether they want to read the reasoning.
_GOOGLES = "thinkingConfig"
_NONE = "none"
# These parts are chat completions' own, and so is a message of the older functions.
_ONLY_CHAT_PARTS = (b'"input_audio"', b'"video_url"', b'"function_call"')
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


class ResponsesAdapter(ResponsesForwarder):
    def __init__(self, adapter: OpenAIAdapter) -> None:
        super().__init__(adapter)
        self._form = _FORMATS[adapter.provider]
        # OpenAI's results of tools may hold images and files there:
        # https://developers.openai.com/api/reference/resources/responses/methods/create
        takes_media = adapter.provider != "xai"
        self._rules = replace(adapter.dialect, reasoning_formats=(self._form,), tool_media=takes_media)

    def is_for(self, request: ChatRequest, credentials: Credentials) -> bool:
        """True if the model has no chat completions, or the request wants tools and reasoning together and chat
        completions of the model give only one."""
        models = _models(self._rules, credentials.extra.get(_MODELS, ""))
        if not models:
            return False
        if _ONLY_RESPONSES.search(request.family):
            return not _is_only_chat(request)
        if find(request.body, b'"tools"') < 0:
            return False
        if not is_one_of(request.family, models) and not is_one_of(request.model, models):
            return False
        fields = request.fields
        return bool(fields.get("tools")) and _reasons(fields) and not _is_only_chat(request)

    def amended(self, request: ChatRequest, failure: ProviderError) -> ChatRequest | None:
        """Drops what the provider refused and only this API has; None for any other refusal.

        OpenAI writes summaries for verified organizations only, and reads encrypted reasoning only for the organization
        that it was written for.
        """
        refused, fields = failure.details or {}, request.fields
        if refused.get("param") == "reasoning.summary" and _shows_reasoning(fields):
            warning = f"thinking: its text dropped, {self.provider} refuses summaries here"
            return _changed(request, _hidden_reasoning(fields), warning)
        if refused.get("code") == "invalid_encrypted_content" and find(request.body, b'"reasoning_details"') >= 0:
            bare = {"messages": [_without_reasoning(message) for message in fields["messages"]]}
            return _changed(request, bare, f"messages.reasoning_details: dropped, {self.provider} cannot read them")
        return None

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        builder = self._builder(credentials)
        if any(find(request.body, mark) >= 0 for mark in builder.marks_of_fetched):
            return builder.needs(request)
        return NOTHING

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint, model = self.destination(request.model, credentials)
        if request.known_as and is_one_of(request.model, _models(self._rules, credentials.extra.get(_MODELS, ""))):
            request = msgspec.structs.replace(request, known_as="")  # The integration's option tells what it is.
        body, warnings = self._builder(credentials).build(request)
        summary = _shows_reasoning(request.fields)
        made, dropped = responses_body({**_decode(body), "model": model}, summary=summary, provider=self.provider)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, _encode(made), warnings + dropped)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        answer = super()._parse(request, body)
        # The client of a chat completion learns no ids.
        made = chat_completion(body, reasoning_format=self._form)
        return msgspec.structs.replace(answer, body=made, given=NOTHING_GIVEN)

    def stream(self, request: ChatRequest) -> StreamTranslator:
        return ResponsesStream(
            model=request.model, provider=self.provider, redact=self._dialect.redact, form=self._form
        )

    def _builder(self, credentials: Credentials) -> BodyBuilder:
        return _builder(self._rules, credentials.extra.get(_MODELS, ""))


@lru_cache(maxsize=256)
def _models(dialect: Dialect, option: str) -> tuple[str, ...]:
    if option.strip() == _NONE:
        return ()
    named = tuple(name for part in option.split(",") if (name := part.strip()))
    return named or dialect.responses_models


@lru_cache(maxsize=256)
def _builder(dialect: Dialect, option: str) -> BodyBuilder:
    added = tuple(name for name in _models(dialect, option) if name not in dialect.responses_models)
    return BodyBuilder(
        replace(
            dialect,
            effort_models=(*dialect.effort_models, *added),
            reasoning_models=(*dialect.reasoning_models, *added),
        )
    )


def _reasons(fields: Mapping[str, Any]) -> bool:
    """False if the request switches reasoning off; the newest models reason by default."""
    effort, thinking = fields.get("reasoning_effort"), fields.get("thinking")
    if effort is not None:
        return bool(effort != "none")
    return not isinstance(thinking, Mapping) or thinking.get("type") not in THINKING_OFF


def _shows_reasoning(fields: Mapping[str, Any]) -> bool:
    """Whether the client asks to read the reasoning itself: OpenAI writes summaries only for verified organizations
    (https://platform.openai.com/docs/guides/reasoning#reasoning-summaries)."""
    thinking, google = fields.get("thinking"), fields.get(_GOOGLES)
    if isinstance(google, Mapping):
        return google.get("includeThoughts") is True
    if not isinstance(thinking, Mapping) or thinking.get("type") in THINKING_OFF:
        return False
    return bool(thinking.get("display") != _HIDDEN)


def _hidden_reasoning(fields: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(google := fields.get(_GOOGLES), Mapping):
        return {_GOOGLES: {**google, "includeThoughts": False}}
    return {"thinking": {**fields["thinking"], "display": _HIDDEN}}


def _changed(request: ChatRequest, fields: Mapping[str, Any], warning: str) -> ChatRequest:
    made = {**request.fields, **fields}
    warnings = (*request.warnings, warning)
    return msgspec.structs.replace(request, body=_encode(made), fields=made, is_plain=False, warnings=warnings)


def _without_reasoning(message: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name != "reasoning_details"}


def _is_only_chat(request: ChatRequest) -> bool:
    """Whether the request needs what the Responses API lacks, so that the answer would differ in kind. Optional fields
    do not count."""
    if any(find(request.body, part) >= 0 for part in _ONLY_CHAT_PARTS):
        return True
    fields = request.fields
    if kind_of_answer(fields) or fields.get("functions"):
        return True
    if fields.get("web_search_options") is not None and not request.is_translated:
        return True
    return bool(fields.get("logprobs")) and not request.is_foreign


ADAPTERS = {adapter.provider: ResponsesAdapter(adapter) for adapter in SPEAKERS}
