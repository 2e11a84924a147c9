"""The ranking of documents by Cohere (https://docs.cohere.com/reference/rerank)."""

from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.base import ChatRequest, Credentials, ParsedResponse, UpstreamRequest
from integrations.providers.cohere.adapter import ADAPTER, CohereAdapter
from integrations.providers.common.forwarder import OperationForwarder
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage

_FIELDS = ("query", "documents", "top_n", "max_tokens_per_doc")
# Four bytes for each token is the usual rule of thumb for text.
_BYTES_PER_TOKEN = 4


class _Billed(msgspec.Struct):
    search_units: float | None = None
    input_tokens: float | None = None


class _Meta(msgspec.Struct):
    billed_units: _Billed | None = None


class _Answer(msgspec.Struct):
    results: list[msgspec.Raw]
    meta: _Meta | None = None


_decode = msgspec.json.Decoder(_Answer).decode
_decode_request = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_documents = msgspec.json.Decoder(list[str | dict[str, msgspec.Raw]]).decode


class CohereRerank(OperationForwarder):
    def __init__(self, adapter: CohereAdapter) -> None:
        super().__init__(adapter)
        self._adapter = adapter

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._adapter.endpoint_of("rerank", credentials)
        given = _decode_request(request.body)
        body: dict[str, Any] = {"model": request.model, **{name: given[name] for name in _FIELDS if name in given}}
        body["documents"] = [_text(one) for one in _decode_documents(given["documents"])]
        left_out = sorted(given.keys() - {"model", "user", *_FIELDS})
        warnings = tuple(f"{name} is not known to cohere" for name in left_out)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, msgspec.json.encode(body), warnings)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        try:
            answer = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ProviderError(
                "the answer holds no results", kind=FailureKind.UNUSABLE, provider=self.provider, status=200
            ) from error
        billed = answer.meta.billed_units if answer.meta is not None else None
        return ParsedResponse(body, request.model, "", _usage(request, billed))


def _usage(request: ChatRequest, billed: _Billed | None) -> Usage | None:
    """Returns what Cohere bills: tokens of newer models, searches of older ones, whose tokens are estimated."""
    if billed is None:
        return None
    if billed.input_tokens:
        return Usage(prompt_tokens=int(billed.input_tokens))
    tokens = -(-len(request.body) // _BYTES_PER_TOKEN)
    return Usage(prompt_tokens=tokens, searches=int(billed.search_units or 0), estimated=True)


def _text(document: str | dict[str, msgspec.Raw]) -> str:
    if isinstance(document, str):
        return document
    text = bytes(document.get("text", b""))
    return msgspec.json.decode(text, type=str) if text.startswith(b'"') else msgspec.json.encode(document).decode()


FORWARDERS = {"cohere": CohereRerank(ADAPTER)}
