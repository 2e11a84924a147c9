"""A request's head: its origin, and the bytes before its body. Values that could smuggle in a second request are
refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from integrations.providers.base import UpstreamRequest
from integrations.transport import failures

# The transport itself sets the headers of framing, and no compression is accepted, since the answer could not be read.
_OWN_HEADERS = frozenset({"content-length", "transfer-encoding", "connection", "accept-encoding"})
# Some front ends refuse a request without a user agent.
_DEFAULTS = {"accept": "*/*", "user-agent": "prompt-gateway"}

_METHOD = re.compile(r"[A-Z]+\Z")
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]+\Z")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")
_URL = re.compile(r"[\x21-\x7e]+\Z")
_HOST = re.compile(r"[A-Za-z0-9._:\-]+\Z")

_PORTS = {"http": 80, "https": 443}


# Each request looks its origin up twice, and the hash of a dataclass would be computed in Python.
class Origin(NamedTuple):
    scheme: str
    host: str
    port: int

    @property
    def secure(self) -> bool:
        return self.scheme == "https"


@dataclass(frozen=True, slots=True)
class RequestHead:
    """`target` is path and query; `prefix` is everything up to and including `content-length: `."""

    origin: Origin
    target: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    prefix: bytes = field(repr=False)

    def with_length(self, length: int) -> bytes:
        return b"%b%d\r\n\r\n" % (self.prefix, length)


def head_of(request: UpstreamRequest) -> RequestHead:
    """Raises ProviderError(CREDENTIALS) for a URL or a header that HTTP does not allow."""
    return _head(request.method, request.url, tuple(request.headers.items()))


def origin_of(url: str) -> Origin:
    return _parse_url(url)[1]


# A project's requests have the same method, URL and headers, and differ in the body only.
@lru_cache(maxsize=1024)
def _head(method: str, url: str, items: tuple[tuple[str, str], ...]) -> RequestHead:
    if not _METHOD.match(method) or method == "HEAD":
        raise failures.refused("its method is not supported")
    parts, origin = _parse_url(url)
    headers = _complete_headers(parts, items)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [
        f"{method} {target} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.items()),
        "content-length: ",
    ]
    return RequestHead(origin, target, headers, "\r\n".join(lines).encode("latin-1"))


def _parse_url(url: str) -> tuple[SplitResult, Origin]:
    # urlsplit drops CR, LF and tab silently, so the text is checked first.
    if not _URL.match(url):
        raise failures.refused("its URL holds characters that HTTP does not allow")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise failures.refused("its URL is malformed") from None
    if parts.scheme not in _PORTS or not parts.hostname or not _HOST.match(parts.hostname):
        raise failures.refused("its URL is not an absolute http or https address")
    if "@" in parts.netloc:
        raise failures.refused("its URL carries a user name")
    return parts, Origin(parts.scheme, parts.hostname, _PORTS[parts.scheme] if port is None else port)


def _complete_headers(parts: SplitResult, items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    headers = {"host": parts.netloc, "accept-encoding": "identity", **_DEFAULTS}
    for name, value in items:
        if not _NAME.match(name):
            raise failures.refused("a header's name holds characters that HTTP does not allow")
        if not _VALUE.match(value):
            raise failures.refused(f"the value of header {name} holds characters that HTTP does not allow")
        if name not in _OWN_HEADERS:
            headers[name] = value
    return headers
