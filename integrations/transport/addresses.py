from __future__ import annotations

import ipaddress
import socket
from urllib.parse import SplitResult, urlsplit, urlunsplit

from core.errors import ValidationError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa")

# The first network holds all IPv6 addresses that are routed (https://www.iana.org/assignments/ipv6-address-space), the
# second is the prefix through which networks without IPv4 reach it (RFC 6052).
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# Addresses in the next two networks look public, and are answered by the cloud's own host: Oracle's metadata service is
# 192.0.0.192, Azure's agent 168.63.129.16
# (https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
_HOST_NETWORKS = (ipaddress.IPv4Network("192.0.0.0/24"), ipaddress.IPv4Network("168.63.129.16/32"))


class PrivateAddressError(Exception):
    """A host's name resolves to a private address. The message has the name but not the address, which would show how
    the network is laid out."""

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} is on a private network")
        self.host = host


def check_base_url(base_url: str, *, allow_private: bool, field: str = "base_url") -> None:
    """Raises core.errors.ValidationError, which names the field, for an address that a project may not name. Public
    hosts need https. Names are resolved, so a public name of a private address is refused too."""
    parts = _parts(base_url, field)
    host = (parts.hostname or "").rstrip(".").lower()
    private = _is_private(host)
    if private and not allow_private:
        raise ValidationError.of_field(field, "must not be a private address (ALLOW_PRIVATE_UPSTREAMS permits it)")
    if parts.scheme == "http" and not private:
        raise ValidationError.of_field(field, "must start with https://")


def check_webhook_url(url: str, *, allow_private: bool, field: str = "url") -> None:
    """Raises core.errors.ValidationError for an address that a project may not have messages posted to. Unlike in other
    addresses, a token may be in the query."""
    try:
        bare = urlunsplit(urlsplit(url)._replace(query=""))
    except ValueError:
        raise ValidationError.of_field(field, "is not an address") from None
    if not url.isascii() or any(character <= " " or character == "\x7f" for character in url):
        raise ValidationError.of_field(field, "must be an address without blanks or control characters")
    check_base_url(bare, allow_private=allow_private, field=field)


def check_form(base_url: str) -> None:
    """Raises core.errors.ValidationError if the text is not an address that requests can be sent to. It is the only
    check for operators, who may use any network."""
    _parts(base_url, "base_url")


def _parts(base_url: str, field: str) -> SplitResult:
    if not base_url.isascii() or any(character <= " " or character == "\x7f" for character in base_url):
        raise ValidationError.of_field(field, "must be an address without blanks or control characters")
    try:
        parts = urlsplit(base_url)
        _ = parts.port  # The property raises ValueError when the port is no number.
    except ValueError:
        raise ValidationError.of_field(field, "is not an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValidationError.of_field(field, "must start with https://")
    if parts.username is not None or parts.password is not None:
        raise ValidationError.of_field(field, "must not hold credentials")
    if parts.query or parts.fragment:
        raise ValidationError.of_field(field, "must not hold a query or a fragment")
    return parts


def _is_private(host: str) -> bool:
    if literal_address(host) is not None or is_local_name(host):
        return is_plainly_private(host)
    return any(not is_public(address) for address in resolved(host))


def is_plainly_private(host: str) -> bool:
    """Returns True if the host's text itself shows that it is private, so that the person who entered it knew. Resolves
    no name."""
    literal = literal_address(host)
    return is_local_name(host) if literal is None else not is_public(literal)


def is_local_name(host: str) -> bool:
    host = host.rstrip(".").lower()
    return "." not in host or host.endswith(_LOCAL_SUFFIXES)


def resolved(host: str) -> list[IPAddress]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [address for entry in found if (address := literal_address(str(entry[4][0]))) is not None]


def literal_address(host: str) -> IPAddress | None:
    """Returns the host's address in any notation that connects to one; None for a name."""
    host = host.partition("%")[0]
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        # The C library also reads 127.1, 0x7f000001 and 2130706433 as addresses.
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def is_public(address: IPAddress) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = _inner(address)
        if inner is not None:
            return is_public(inner)
        return address in _GLOBAL_UNICAST and address.is_global
    return address.is_global and not address.is_multicast and not any(address in network for network in _HOST_NETWORKS)


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address into which a translator on the way (NAT64, 6to4) turns this IPv6 address, if any."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
