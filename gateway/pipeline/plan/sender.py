"""The senders of requests, as the connections of clients know them."""

from __future__ import annotations

from operator import itemgetter
from typing import Final, NamedTuple

from gateway.pipeline.authenticate import key_hash_of
from gateway.protocol.arrived import ArrivedRequest
from gateway.protocol.headers import ClientHeaders, RequestHeaders, client_headers, read_headers

_SENDER: Final = "sender"
_name_of = itemgetter(0)


class KnownSender(NamedTuple):
    """What the headers of a connection's last request say of its sender. `passed` are those of a client's protocol, by
    the names that an adapter passes on."""

    headers: RequestHeaders
    key_hash: str
    names: frozenset[bytes]
    passed: dict[tuple[str, ...], ClientHeaders]
    asks_for_nothing: bool

    def passed_on(self, names: tuple[str, ...]) -> ClientHeaders:
        """Returns the headers of these names, in lower case, that go on to a provider."""
        if names not in self.passed:
            self.passed[names] = client_headers(self.headers.raw, names)
        return self.passed[names]


def known_sender(client: ArrivedRequest) -> KnownSender:
    """Returns the sender. Most clients send the same headers again, which the server gives as the same list. Raises
    AuthenticationError for headers without a key."""
    raw, memory = client.scope["headers"], client.memory
    known: KnownSender | None = memory.get(_SENDER)
    if known is None or known.headers.raw is not raw:
        headers, names = read_headers(raw), frozenset(map(_name_of, raw))
        known = memory[_SENDER] = KnownSender(headers, key_hash_of(headers), names, {}, _asks_for_nothing(headers))
    return known


def _asks_for_nothing(headers: RequestHeaders) -> bool:
    """Returns whether the headers name the sender and a managed prompt alone."""
    return not (headers.content_encoding or headers.cache_control or headers.force_variant or headers.variables)
