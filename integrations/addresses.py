"""The base addresses that an integration may name: a base_url is a way into whatever network the gateway stands in."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import SplitResult, urlsplit

from core.errors import ValidationError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa")

# IPv6 that is routed at all (https://www.iana.org/assignments/ipv6-address-space), and the prefix through which
# networks without IPv4 reach it (RFC 6052).
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# Public in form, answered by the cloud's own host: Oracle's metadata service is 192.0.0.192, Azure's agent
# 168.63.129.16 (https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
_OF_THE_HOST = (ipaddress.IPv4Network("192.0.0.0/24"), ipaddress.IPv4Network("168.63.129.16/32"))


class PrivateAddressError(Exception):
    """A name leads into a private network. Names the host only: what it resolves to is nobody's business."""

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} is on a private network")
        self.host = host


def check_base_url(base_url: str, *, allow_private: bool) -> None:
    """Raises core.errors.ValidationError that says what is wrong.

    Public hosts need https. Names are resolved, so that a public name for a private address is refused as well.
    """
    parts = _parts(base_url)
    host = (parts.hostname or "").rstrip(".").lower()
    private = _is_private(host)
    if private and not allow_private:
        raise _invalid("must not be a private address (ALLOW_PRIVATE_UPSTREAMS permits it)")
    if parts.scheme == "http" and not private:
        raise _invalid("must start with https://")


def check_form(base_url: str) -> None:
    """Only that the text is an address that requests can be sent to; for operators, who may use any network."""
    _parts(base_url)


def _parts(base_url: str) -> SplitResult:
    if not base_url.isascii() or any(character <= " " or character == "\x7f" for character in base_url):
        raise _invalid("must be an address without blanks or control characters")
    try:
        parts = urlsplit(base_url)
        _ = parts.port  # raises ValueError when it is no number
    except ValueError:
        raise _invalid("is not an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _invalid("must start with https://")
    if parts.username is not None or parts.password is not None:
        raise _invalid("must not hold credentials")
    if parts.query or parts.fragment:
        raise _invalid("must not hold a query or a fragment")
    return parts


def _is_private(host: str) -> bool:
    if literal_address(host) is not None or is_local_name(host):
        return is_plainly_private(host)
    return any(not is_public(address) for address in resolved(host))


def is_plainly_private(host: str) -> bool:
    """The host says itself that it is not on the internet: who wrote it down knew that. No name is resolved."""
    literal = literal_address(host)
    return is_local_name(host) if literal is None else not is_public(literal)


def is_local_name(host: str) -> bool:
    host = host.rstrip(".").lower()
    return "." not in host or host.endswith(_LOCAL_SUFFIXES)


def resolved(host: str) -> list[IPAddress]:
    """The addresses of a name; none when it does not resolve now."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [address for entry in found if (address := literal_address(str(entry[4][0]))) is not None]


def literal_address(host: str) -> IPAddress | None:
    """The address that a host is, in any notation that connects to one; None for a name."""
    host = host.partition("%")[0]
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        # What the C library takes for an address too: 127.1, 0x7f000001, 2130706433.
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def is_public(address: IPAddress) -> bool:
    """Anyone on the internet may reach it."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = _inner(address)
        if inner is not None:
            return is_public(inner)
        return address in _GLOBAL_UNICAST and address.is_global
    return address.is_global and not address.is_multicast and not any(address in network for network in _OF_THE_HOST)


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a translator on the way makes of this one."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _invalid(problem: str) -> ValidationError:
    return ValidationError(f"base_url: {problem}", details={"base_url": [problem]})
