"""Transcriptions of audio by the providers of OpenAI's dialect
(https://platform.openai.com/docs/api-reference/audio/createTranscription). The client's form is forwarded."""

from __future__ import annotations

from typing import Any

from integrations.providers.base import ChatRequest, Credentials, ParsedResponse, UpstreamRequest
from integrations.providers.common.multipart import boundary_of, parts_of, text_of, with_field
from integrations.providers.openai import azure
from integrations.providers.openai.adapter import ADAPTER, OpenAIAdapter
from integrations.providers.openai.compatible import adapters_with
from integrations.providers.openai.operations import JsonOperation, usage_in
from integrations.providers.usage import Usage

_TEXTS = frozenset({"text", "srt", "vtt"})


class TranscriptionsForwarder(JsonOperation):
    def __init__(self, adapter: OpenAIAdapter) -> None:
        super().__init__(adapter, "audio/transcriptions")

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._adapter.endpoint_of(self._path, request.model, credentials)
        kind = b"multipart/form-data; boundary=%b" % boundary_of(request.body)
        headers = {**endpoint.headers, "content-type": kind.decode("latin-1")}
        return UpstreamRequest("POST", endpoint.url, headers, with_field(request.body, "model", request.model))

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        if _format_of(request.body) in _TEXTS:
            return ParsedResponse(body, request.model, "", None)
        fields = self._fields(body)
        if not isinstance(fields.get("text"), str):
            raise self._unusable("the answer holds no text")
        return ParsedResponse(body, request.model, "", _usage(fields.get("usage")))


def _format_of(body: bytes) -> str:
    return next((text_of(body, part) for part in parts_of(body) if part.name == "response_format"), "json")


def _usage(usage: Any) -> Usage | None:
    """Returns the tokens that OpenAI counts; None for durations, and for Mistral's tokens, beside which it bills the
    duration."""
    if not isinstance(usage, dict) or "prompt_audio_seconds" in usage:
        return None
    details = usage.get("input_token_details")
    return usage_in({"usage": {**usage, "input_tokens_details": details} if details else usage})


FORWARDERS = {
    "openai": TranscriptionsForwarder(ADAPTER),
    "azure_openai": TranscriptionsForwarder(azure.ADAPTER),
    **{name: TranscriptionsForwarder(adapter) for name, adapter in adapters_with("transcriptions").items()},
}
