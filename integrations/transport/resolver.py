"""Resolves names in the gateway itself, so that connections go only to checked addresses. A check in advance is not
enough, since a name may resolve differently by the time of the connection."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult

from integrations.transport.addresses import (
    IPAddress,
    PrivateAddressError,
    is_plainly_private,
    is_public,
    literal_address,
)

AddressPolicy = Callable[[str, IPAddress], bool]
"""A function that returns True when a host may lead to an address."""

Lookup = Callable[[str, int], Awaitable[list[str]]]
"""A function that returns the addresses of a host. It raises OSError when there are none."""


def any_address(host: str, address: IPAddress) -> bool:
    return True


def as_named(host: str, address: IPAddress) -> bool:
    """Allows public addresses, and private ones if the host itself shows that it is private, which was checked when it
    was saved. A public name must not lead to a private address."""
    return is_public(address) or is_plainly_private(host)


def only_public(host: str, address: IPAddress) -> bool:
    return is_public(address)


async def system_lookup(host: str, port: int) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # Python raises UnicodeError for an empty or overlong label of a host name.
        raise OSError(f"{host} is not a host name") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def blocking_lookup(host: str, port: int) -> list[str]:
    """Returns the addresses of a host in a thread that may wait. Raises OSError when there are none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # Python raises UnicodeError for an empty or overlong label of a host name.
        raise OSError(f"{host} is not a host name") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Resolver:
    def __init__(self, allowed: AddressPolicy = any_address, lookup: Lookup = system_lookup) -> None:
        self._allowed = allowed
        self.lookup = lookup

    async def addresses(self, host: str, port: int) -> list[str]:
        """Raises PrivateAddressError if all addresses are refused, OSError if there are none."""
        found = [host] if literal_address(host) is not None else await self.lookup(host, port)
        allowed = [text for text in found if self._may_lead(host, text)]
        if found and not allowed:
            raise PrivateAddressError(host)
        return allowed

    def _may_lead(self, host: str, text: str) -> bool:
        address = literal_address(text)
        return address is not None and self._allowed(host, address)


class AiohttpResolver(AbstractResolver):
    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._trusting = Resolver(lookup=resolver.lookup)
        self._trusted: set[tuple[str, int]] = set()

    def trust(self, url: str) -> None:
        parts = urlsplit(url)
        self._trusted.add((parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)))

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        resolver = self._trusting if (host, port) in self._trusted else self._resolver
        return [_result(host, address, port) for address in await resolver.addresses(host, port)]

    async def close(self) -> None:
        """Does nothing, since the resolver holds no resources."""


def _result(host: str, address: str, port: int) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET6 if ":" in address else socket.AF_INET,
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
