"""The senders of requests, as the connections of clients know them."""

from __future__ import annotations

from operator import itemgetter
from typing import Final, NamedTuple

from gateway.pipeline.authenticate import key_hash_of
from gateway.protocol.arrived import ArrivedRequest
from gateway.protocol.headers import RequestHeaders, read_headers

_SENDER: Final = "sender"
_name_of = itemgetter(0)


class KnownSender(NamedTuple):
    """What the headers of a connection's last request say of its sender."""

    headers: RequestHeaders
    key_hash: str
    names: frozenset[bytes]
    asks_for_nothing: bool


def known_sender(client: ArrivedRequest) -> KnownSender:
    """Returns the sender. Most clients send the same headers again, which the server gives as the same list. Raises
    AuthenticationError for headers without a key."""
    raw, memory = client.scope["headers"], client.memory
    known: KnownSender | None = memory.get(_SENDER)
    if known is None or known.headers.raw is not raw:
        headers, names = read_headers(raw), frozenset(map(_name_of, raw))
        known = memory[_SENDER] = KnownSender(headers, key_hash_of(headers), names, _asks_for_nothing(headers))
    return known


def _asks_for_nothing(headers: RequestHeaders) -> bool:
    """Returns whether the headers name the sender alone."""
    return headers.prompt_config is None and not (
        headers.content_encoding or headers.cache_control or headers.force_variant or headers.variables
    )
