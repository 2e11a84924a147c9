"""Hosts as requests name them: in the Host header, and in URLs of the absolute form (RFC 9112, section 3.2)."""

from __future__ import annotations

import re
from functools import lru_cache

# RFC 3986, section 3.2.2: a registered name, which may be empty, an IPv4 address or an IP literal; then a port.
_HOST = re.compile(rb"(?:[\w.~!$&'()*+,;=%-]*|\[[0-9A-Za-z:.]+\])(?::[0-9]*)?", re.ASCII)
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
_DEFAULT_PORT = re.compile(rb":(?:80|443)?\Z")


@lru_cache(maxsize=256)
def is_host(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None


def host_of_url(url: bytes) -> bytes | None:
    """Returns the authority of a URL in the absolute form; None for a path."""
    found = _ABSOLUTE.match(url)
    return found[1] if found else None


def without_default_port(host: bytes) -> bytes:
    return _DEFAULT_PORT.sub(b"", host.lower())
