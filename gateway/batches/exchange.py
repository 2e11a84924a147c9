from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import msgspec

from core.errors import ApplicationError, NotFoundError
from gateway.batches.places import Place
from gateway.batches.surfaces import StoredObjectSurface
from gateway.errors import ProviderFailedError, from_provider
from gateway.pipeline.context import RequestState
from gateway.runtime.runtime import Runtime
from integrations.pricing.cost import FREE
from integrations.providers.additions import with_headers
from integrations.providers.base import UploadRequest, UpstreamRequest
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage
from integrations.registry import adapter_for
from integrations.transport.base import UpstreamResponse

_ERROR_BODY_BYTES = 256 * 1024
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Sent(NamedTuple):
    method: str
    path: str
    body: bytes = b""
    content_type: str = ""
    file: BinaryIO | None = None
    length: int = 0


class Exchange:
    def __init__(self, runtime: Runtime, state: RequestState, surface: StoredObjectSurface, place: Place) -> None:
        self._runtime, self._state, self._surface, self.place = runtime, state, surface, place
        routing = state.routing
        routing.provider, routing.deployment, routing.price = place.provider, place.name, FREE
        # The call itself uses no tokens and costs nothing: what a batch costs is in the records of its results.
        state.answer.usage, state.answer.is_native = Usage(), True

    async def ask(self, sent: Sent) -> tuple[bytes, Mapping[str, Any]]:
        response = await self.open(sent)
        try:
            body = await response.read(limit=self._runtime.answer_bytes, until=time.monotonic() + self._seconds_left())
            return body, _decode(body)
        except ProviderError as failure:
            raise self._error_of(failure) from failure
        except (msgspec.DecodeError, RecursionError) as error:
            raise ProviderFailedError(f"{self.place.provider}: the answer is not a JSON object") from error
        finally:
            response.close()

    async def open(self, sent: Sent) -> UpstreamResponse:
        runtime, place = self._runtime, self.place
        adapter = adapter_for(place.provider)
        try:
            upstream = self._request(sent)
            if place.credentials.adds_headers:
                upstream = with_headers(upstream, place.credentials, self._state.headers.raw)
            # Only the transport for uploads reads a body from a file.
            transport = runtime.transport if sent.file is None else runtime.uploads
            response = await transport.send(upstream, runtime.deadlines.within(self._seconds_left()))
            if 200 <= response.status < 300:
                return response
            try:
                body = await response.read(limit=_ERROR_BODY_BYTES, until=time.monotonic() + self._seconds_left())
            finally:
                response.close()
            raise adapter.classify_failure(response.status, response.headers, body)
        except ProviderError as failure:
            raise self._error_of(failure) from failure

    def _request(self, sent: Sent) -> UpstreamRequest:
        path, _, query = sent.path.partition("?")
        endpoint = self._surface.vendor.endpoint(self.place.provider, path, self.place.credentials)
        url = f"{endpoint.url}?{query}" if query else endpoint.url
        headers = dict(endpoint.headers)
        if sent.content_type:
            headers["content-type"] = sent.content_type
        if sent.file is not None:
            return UploadRequest(sent.method, url, headers, b"", file=sent.file, length=sent.length)
        return UpstreamRequest(sent.method, url, headers, sent.body)

    def _error_of(self, failure: ProviderError) -> ApplicationError:
        if failure.kind is FailureKind.NOT_FOUND:
            return NotFoundError(f"{self.place.provider}: {failure.message}")
        return from_provider(failure)

    def _seconds_left(self) -> float:
        return self._runtime.deadlines.left(self._state.started)
