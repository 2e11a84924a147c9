"""Forwards requests in a client's own protocol: the client's bytes, with the provider's name of the model
(docs/architecture.md#surfaces)."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

import msgspec

from integrations.providers.base import StreamTranslator
from integrations.providers.common.sse import ServerSentEvent
from integrations.providers.errors import ProviderError

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


# The byte is compared as a number, since `in` with a bytes argument first raises and drops an internal error.
_LF = ord("\n")


class _Model(msgspec.Struct):
    model: str = ""


_decode_model = msgspec.json.Decoder(_Model).decode


def with_model(body: bytes, model: str, body_model: str = "") -> bytes:
    """Returns the same bytes if they name that model. `body_model` is the model in the body, empty if the caller does
    not have it."""
    if (body_model or _decode_model(body).model) == model:
        return body
    fields = _decode(body)
    fields["model"] = _raw(model)
    return _encode(fields)


@lru_cache(maxsize=1024)
def _raw(model: str) -> msgspec.Raw:
    return msgspec.Raw(_encode(model))


def framed(event: ServerSentEvent) -> bytes:
    data = event.data if _LF not in event.data else event.data.replace(b"\n", b"\ndata: ")
    return b"event: %b\ndata: %b" % (event.event.encode(), data) if event.event else b"data: " + data


def frames(translator: StreamTranslator, events: bytes) -> bytes:
    chunks = translator.feed(events)
    # A stream that broke off has no proper end, and the chunks before it are all there is.
    with suppress(ProviderError):
        chunks += translator.closing()
    return b"".join([b"data: %b\n\n" % chunk.data for chunk in chunks])
