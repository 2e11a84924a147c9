"""Operations beside chat completions and embeddings. The client's bytes are forwarded unchanged, and so is the
answer.
"""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.base import ChatRequest, Credentials, ParsedResponse, UpstreamRequest
from integrations.providers.common.failures import failure_in_body
from integrations.providers.common.forwarder import OperationForwarder
from integrations.providers.common.forwarding import with_model
from integrations.providers.common.multipart import boundary_of, parts_of, text_of, with_field
from integrations.providers.common.usage import read_usage
from integrations.providers.openai import azure
from integrations.providers.openai.adapter import ADAPTER, OpenAIAdapter
from integrations.providers.openai.compatible import adapters_with
from integrations.providers.usage import Usage

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class JsonOperation(OperationForwarder[OpenAIAdapter]):
    """An operation with a JSON answer at the path `path`."""

    def __init__(self, adapter: OpenAIAdapter, path: str) -> None:
        super().__init__(adapter)
        self._path = path

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._dialect.endpoint_of(self._path, request.model, credentials)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, with_model(request.body, request.model))

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        fields = self._fields(body)
        return ParsedResponse(body, str(fields.get("model") or request.model), "", usage_in(fields))

    def _fields(self, body: bytes) -> dict[str, Any]:
        try:
            fields = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("the answer is not a JSON object") from error
        if fields.get("error"):
            raise failure_in_body(fields, provider=self.provider)
        return fields


class Moderations(JsonOperation):
    """Moderations are free at OpenAI, which counts no tokens of them."""

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        fields = self._fields(body)
        if not isinstance(fields.get("results"), list):
            raise self._unusable("the answer holds no results")
        return ParsedResponse(body, str(fields.get("model") or request.model), "", usage_in(fields))


class Rerank(JsonOperation):
    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        fields = self._fields(body)
        if not isinstance(fields.get("results"), list):
            raise self._unusable("the answer holds no results")
        return ParsedResponse(body, request.model, "", usage_in(fields) or usage_in(fields.get("meta")))


class Images(JsonOperation):
    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        fields = self._fields(body)
        images = fields.get("data")
        if not isinstance(images, list):
            raise self._unusable("the answer holds no images")
        usage = fields.get("usage")
        recorded = msgspec.json.encode({"images": len(images), "usage": usage})
        return ParsedResponse(body, request.model, "", usage_in(fields, images=True), recorded)


class Speech(JsonOperation):
    """Speech is audio, and no vendor counts its tokens."""

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        if not body:
            raise self._unusable("the answer is empty")
        if body[:1] == b"{":
            self._fields(body)
        return ParsedResponse(body, request.model, "", None, msgspec.json.encode({"bytes": len(body)}))


def usage_in(fields: Any, *, images: bool = False) -> Usage | None:
    """The stated tokens under OpenAI's names, old or new; None without any. `images`: the output is images."""
    usage = fields.get("usage") if isinstance(fields, dict) else None
    if not isinstance(usage, dict):
        return None
    found = read_usage(usage)
    if found is None or not found.is_billed:
        return None
    if found.estimated:
        # Such an answer has no output that is counted in tokens: the total is the input's.
        return Usage(prompt_tokens=found.prompt_tokens)
    return msgspec.structs.replace(found, image_completion_tokens=found.completion_tokens) if images else found


def _forwarders(kind: type[JsonOperation], path: str, operation: str, *own: OpenAIAdapter) -> dict[str, JsonOperation]:
    adapters = {**{adapter.provider: adapter for adapter in own}, **adapters_with(operation)}
    return {name: kind(adapter, path) for name, adapter in adapters.items()}


MODERATIONS = _forwarders(Moderations, "moderations", "moderations", ADAPTER)
RERANK = _forwarders(Rerank, "rerank", "rerank")
IMAGES = _forwarders(Images, "images/generations", "images", ADAPTER, azure.ADAPTER)
SPEECH = _forwarders(Speech, "audio/speech", "speech", ADAPTER, azure.ADAPTER)


_TEXTS = frozenset({"text", "srt", "vtt"})


class TranscriptionsForwarder(JsonOperation):
    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._dialect.endpoint_of(self._path, request.model, credentials)
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


TRANSCRIPTION_PATH = "audio/transcriptions"
TRANSCRIPTIONS = _forwarders(TranscriptionsForwarder, TRANSCRIPTION_PATH, "transcriptions", ADAPTER, azure.ADAPTER)
