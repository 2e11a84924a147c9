"""Which base addresses an integration may name: a base_url is a way into whatever network the gateway stands in."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import SplitResult, urlsplit

from core.errors import ValidationError

_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


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
    literal = _address(host)
    if literal is not None:
        return not _is_public(literal)
    if host == "localhost" or "." not in host or host.endswith(_LOCAL_SUFFIXES):
        return True
    return any(not _is_public(address) for address in resolved(host))


def resolved(host: str) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """The addresses of a name; none when it does not resolve now."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [address for entry in found if (address := _address(str(entry[4][0]).partition("%")[0])) is not None]


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        # What the C library takes for an address too: 127.1, 0x7f000001, 2130706433.
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return _is_public(inner)
    return address.is_global and not address.is_multicast


def _invalid(problem: str) -> ValidationError:
    return ValidationError(f"base_url: {problem}", details={"base_url": [problem]})
