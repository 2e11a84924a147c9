"""Name resolution by the gateway itself: only an address that was checked is connected to.

A check of the name beforehand is not enough: it may resolve to something else by the time of the connection.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult
from typing_extensions import override

from integrations.addresses import IPAddress, PrivateAddressError, is_plainly_private, is_public, literal_address

AddressPolicy = Callable[[str, IPAddress], bool]
"""Whether a host may lead to an address."""

Lookup = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host. Raises OSError when there are none."""


def any_address(host: str, address: IPAddress) -> bool:
    return True


def as_named(host: str, address: IPAddress) -> bool:
    """A private address is reached by a host that says what it is, which was decided on when it was saved; a public
    name must not lead to one."""
    return is_public(address) or is_plainly_private(host)


def only_public(host: str, address: IPAddress) -> bool:
    return is_public(address)


async def system_lookup(host: str, port: int) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # an empty or overlong label
        raise OSError(f"{host} is not a name") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Resolver:
    """`addresses` is asked once per new connection."""

    def __init__(self, allowed: AddressPolicy = any_address, lookup: Lookup = system_lookup) -> None:
        self._allowed = allowed
        self.lookup = lookup

    async def addresses(self, host: str, port: int) -> list[str]:
        """Returns the addresses to connect to. Raises PrivateAddressError when all addresses are refused, OSError
        without any."""
        found = [host] if literal_address(host) is not None else await self.lookup(host, port)
        allowed = [text for text in found if self._may_lead(host, text)]
        if found and not allowed:
            raise PrivateAddressError(host)
        return allowed

    def _may_lead(self, host: str, text: str) -> bool:
        address = literal_address(text)
        return address is not None and self._allowed(host, address)


class AiohttpResolver(AbstractResolver):
    """A Resolver for aiohttp, which asks it for names and takes literal addresses as they are."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._trusting = Resolver(lookup=resolver.lookup)
        self._trusted: set[tuple[str, int]] = set()

    def trust(self, url: str) -> None:
        """The operator's own proxy may stand anywhere."""
        parts = urlsplit(url)
        self._trusted.add((parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)))

    @override
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        resolver = self._trusting if (host, port) in self._trusted else self._resolver
        return [_result(host, address, port) for address in await resolver.addresses(host, port)]

    @override
    async def close(self) -> None:
        """Nothing is held."""


def _result(host: str, address: str, port: int) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET6 if ":" in address else socket.AF_INET,
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
