"""Operations that the providers of OpenAI's dialect have beside chat completions and embeddings. The client's bytes are
forwarded as they came, and so is the answer."""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.base import ChatRequest, Credentials, ParsedResponse, UpstreamRequest
from integrations.providers.common.failures import failure_in_body
from integrations.providers.common.forwarder import OperationForwarder
from integrations.providers.common.forwarding import with_model
from integrations.providers.common.usage import read_usage
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.openai import azure
from integrations.providers.openai.adapter import ADAPTER, OpenAIAdapter
from integrations.providers.openai.compatible import adapters_with
from integrations.providers.usage import Usage

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class JsonOperation(OperationForwarder):
    """An operation with a JSON answer at the path `path`."""

    def __init__(self, adapter: OpenAIAdapter, path: str) -> None:
        super().__init__(adapter)
        self._adapter, self._path = adapter, path

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._adapter.endpoint_of(self._path, request.model, credentials)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, with_model(request.body, request.model))

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        fields = self._fields(body)
        return ParsedResponse(body, str(fields.get("model") or request.model), "", usage_in(fields))

    def _fields(self, body: bytes) -> dict[str, Any]:
        """Returns the decoded answer. Raises ProviderError for an error under status 200, and for anything else."""
        try:
            fields = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unusable("the answer is not a JSON object") from error
        if fields.get("error"):
            raise failure_in_body(fields, provider=self.provider)
        return fields

    def _unusable(self, message: str) -> ProviderError:
        return ProviderError(message, kind=FailureKind.UNUSABLE, provider=self.provider, status=200)


class Moderations(JsonOperation):
    """Moderations cost nothing at OpenAI, which counts no tokens of them."""

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
    """The record of an answer keeps all but the images."""

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
    """Returns the tokens that an answer states under OpenAI's names, old or new; None where it states none. `images`
    means that the output is images."""
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
