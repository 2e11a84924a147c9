from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote

import msgspec

from core.errors import ValidationError
from gateway.batches.exchange import Exchange
from gateway.batches.places import Place, place_for_new, place_of
from gateway.batches.results import Nothing, Passing
from gateway.batches.surfaces import StoredObjectSurface
from gateway.errors import ProviderFailedError
from gateway.models import StoredObject
from gateway.pipeline.admit import admit_free
from gateway.pipeline.callers import has_limits
from gateway.pipeline.context import RequestState
from gateway.pipeline.parse import read_body
from gateway.pipeline.watch import ClientWatch
from gateway.protocol import headers
from gateway.protocol.reply import HeaderList, Reply, Scope, Send
from gateway.runtime.runtime import Runtime
from gateway.tables.stored_object import ID_CHARACTERS, ObjectKind
from integrations.providers.errors import ProviderError
from integrations.transport.base import UpstreamResponse

# The headers of a provider's file that a client gets.
_CONTENT_HEADERS = ("content-type", "content-length", "content-disposition")


class StoredCall(NamedTuple):
    runtime: Runtime
    state: RequestState
    reply: Reply
    watch: ClientWatch
    surface: StoredObjectSurface
    scope: Scope
    send: Send

    @property
    def id(self) -> str:
        found: str = self.scope["url_route"]["kwargs"]["id"]
        return found

    @property
    def query(self) -> Mapping[str, str]:
        return dict(parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True))

    def header(self, name: bytes) -> str:
        return next((value.decode("latin-1") for sent, value in self.scope["headers"] if sent == name), "")

    def limit(self, default: int, maximum: int) -> int:
        text = self.query.get("limit", str(default))
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
            raise ValidationError("limit: has to be a whole number above 0")
        return min(int(text), maximum)

    async def read(self) -> bytes:
        body = await read_body(self.watch.receive, self.state.headers, self.runtime.body_bytes)
        self.watch.body_arrived()
        return body

    async def new_place(self) -> Place:
        state = self.state
        place = place_for_new(state.snapshot, state.key, self.surface.vendor.providers, self.scope["headers"])
        await self.admit()
        return place

    async def admit(self) -> None:
        if has_limits(self.state):
            await admit_free(self.runtime, self.state)

    def exchange(self, place: Place) -> Exchange:
        return Exchange(self.runtime, self.state, self.surface, place)

    def exchange_with(self, row: StoredObject) -> Exchange:
        return self.exchange(place_of(self.state.snapshot, row.integration_id))

    def new_row(self, place: Place, kind: ObjectKind, value: Mapping[str, Any], **known: Any) -> StoredObject:
        vendor_id, state = value.get("id"), self.state
        if not isinstance(vendor_id, str) or not 0 < len(vendor_id) <= ID_CHARACTERS:
            raise ProviderFailedError(f"{place.provider}: the answer names no id")
        return StoredObject(
            project_id=state.snapshot.project_id,
            integration_id=place.credentials.integration_id,
            kind=kind,
            provider=place.provider,
            vendor_id=vendor_id,
            api_key_id=state.key.id,
            team_id=state.key.team_id,
            user_id=state.headers.user_id[:500],
            session_id=state.headers.session_id[:500],
            value=dict(value),
            **known,
        )

    async def answer(self, body: bytes) -> None:
        if self.state.snapshot.settings.log_content:
            self.state.answer.recorded = body
        await self.reply.whole(200, body, self.served_by())

    async def pass_on(self, response: UpstreamResponse, passing: Passing | None = None) -> None:
        """Sends a provider's body as it arrives; the last piece waits until `passing` has completed."""
        passing = passing or Nothing()
        try:
            await self._pass_on(response, passing)
        finally:
            response.close()
            await passing.drop()

    async def _pass_on(self, response: UpstreamResponse, passing: Passing) -> None:
        found = response.headers
        own = [(name.encode(), found[name].encode("latin-1")) for name in _CONTENT_HEADERS if name in found]
        reply = self.reply
        last = b""
        try:
            async for data in response.chunks():
                await passing.feed(data)
                if not reply.started:
                    await self._start(own)
                if last:
                    await self.send({"type": "http.response.body", "body": last, "more_body": True})
                last = data
        except ProviderError as failure:
            # What has left cannot be taken back: the connection ends before its body does.
            self.state.fail(ProviderFailedError(f"{self.state.routing.provider}: {failure.message}"))
            if not reply.started:
                raise self.state.error or failure from failure
            return
        await passing.complete()
        if not reply.started:
            await self._start(own)
        reply.settle()
        await self.send({"type": "http.response.body", "body": last})

    async def _start(self, own: HeaderList) -> None:
        self.reply.started = True
        await self.send(
            {"type": "http.response.start", "status": 200, "headers": [*own, *self.reply.ids, *self.served_by()]}
        )

    def served_by(self) -> HeaderList:
        routing = self.state.routing
        found: HeaderList = [(headers.PROVIDER, routing.provider.encode())] if routing.provider else []
        if routing.deployment:
            found.append((headers.DEPLOYMENT, headers.header_value(routing.deployment)))
        return [*found, *self.state.limits.headers]


def path_of(*parts: str) -> str:
    return "/".join(quote(part, safe="/" if not at else "") for at, part in enumerate(parts))


_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def with_value(body: bytes, name: str, value: Any) -> bytes:
    fields = _decode(body)
    fields[name] = msgspec.Raw(msgspec.json.encode(value))
    return msgspec.json.encode(fields)
