from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urljoin

from yarl import URL

from integrations.errors import MediaError
from integrations.transport.request_head import Origin

_MAX_CHARACTERS = 8192
# An address may consist of visible ASCII characters only, since it is sent unchanged: a changed escape would break a
# signed address.
_CLEAN = re.compile(r"[!-~]+\Z")
_HOST = re.compile(r"[A-Za-z0-9._:\-]+\Z")


@dataclass(frozen=True, slots=True)
class Target:
    """`host` is the one that the client named, for messages; `url` is the address of the next request."""

    url: URL
    host: str

    @property
    def origin(self) -> Origin:
        return Origin(self.url.scheme, self.url.raw_host or "", self.url.port or 0)

    def redirected(self, location: str) -> Target:
        try:
            url = _parsed(urljoin(str(self.url), location))
        except ValueError:
            raise MediaError(self.host, "redirects to something that is not an address") from None
        if self.url.scheme == "https" and url.scheme == "http":
            raise MediaError(self.host, "redirects from https to http")
        return Target(_checked(url, self.host), self.host)


def target_of(address: str) -> Target:
    try:
        url = _parsed(address)
    except ValueError:
        raise MediaError("", "has an address that is malformed") from None
    host = url.raw_host or ""
    return Target(_checked(url, host if _HOST.match(host) else ""), host)


def _parsed(address: str) -> URL:
    if len(address) > _MAX_CHARACTERS:
        raise ValueError("too long")
    url = URL(address.strip(), encoded=_CLEAN.match(address.strip()) is not None)
    _ = url.port  # The property raises ValueError when the port is no number.
    return url


def _checked(url: URL, host: str) -> URL:
    if url.scheme not in ("http", "https"):
        raise MediaError(host, "can be fetched by http and https only")
    if not url.raw_host or not _HOST.match(url.raw_host):
        raise MediaError(host, "has an address without a valid host")
    if url.raw_user is not None or url.raw_password is not None:
        raise MediaError(host, "has an address with credentials in it")
    return url
