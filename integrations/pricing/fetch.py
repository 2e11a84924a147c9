from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import requests
import urllib3
from django.conf import settings

from integrations.pricing.entries import CatalogError

_CHUNK = 64 * 1024
_REDIRECTS = 5
_ETAG_LENGTH = 500  # CatalogState stores ETags of up to 500 characters.


@dataclass(frozen=True, slots=True)
class Fetched:
    body: bytes
    etag: str = ""


def is_address(location: str) -> bool:
    return urlsplit(location).scheme in ("http", "https")


def fetch(location: str, *, etag: str = "") -> Fetched | None:
    """Returns the bytes at an http(s) address or in a file; None if the server answers that `etag` is current. Raises
    CatalogError, whose text leaves out the address's path and query, which may hold a secret."""
    if not is_address(location):
        return _read(Path(location))
    with _failures(urlsplit(location).hostname or ""), requests.Session() as session:
        session.max_redirects = _REDIRECTS
        return _download(session, location, etag)


def _download(session: requests.Session, url: str, etag: str) -> Fetched | None:
    deadline = time.monotonic() + settings.PRICING_FETCH_SECONDS
    headers = {"Accept": "application/json"} | ({"If-None-Match": etag} if etag else {})
    timeout = (min(10.0, settings.PRICING_FETCH_SECONDS), settings.PRICING_FETCH_SECONDS)
    with session.get(url, headers=headers, timeout=timeout, stream=True) as response:
        if url.startswith("https:") and not all(hop.url.startswith("https:") for hop in (*response.history, response)):
            raise CatalogError("leads from https to http")
        if response.status_code == requests.codes.not_modified and etag:
            return None
        if response.status_code != requests.codes.ok:
            raise CatalogError(f"HTTP status {response.status_code}")
        # `iter_content` would wait for whole chunks, and a server that sends single bytes could delay it without limit.
        pieces = iter(lambda: response.raw.read1(_CHUNK, decode_content=True), b"")
        body = _limited(pieces, deadline)
        tag = response.headers.get("ETag", "")
        return Fetched(body, tag if len(tag) <= _ETAG_LENGTH else "")


def _limited(chunks: Iterator[bytes], deadline: float) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > settings.PRICING_MAX_BYTES:
            raise CatalogError(f"larger than {settings.PRICING_MAX_BYTES} bytes")
        if time.monotonic() > deadline:
            raise CatalogError(f"no answer within {settings.PRICING_FETCH_SECONDS:g} seconds")
    return bytes(body)


@contextmanager
def _failures(host: str) -> Iterator[None]:
    try:
        yield
    except CatalogError as error:
        raise CatalogError(f"{host}: {error}") from error
    except requests.Timeout as error:
        raise CatalogError(f"{host}: no answer in time") from error
    except requests.TooManyRedirects as error:
        raise CatalogError(f"{host}: more than {_REDIRECTS} redirects") from error
    except requests.exceptions.SSLError as error:
        raise CatalogError(f"{host}: the connection is not secure") from error
    except urllib3.exceptions.ReadTimeoutError as error:
        raise CatalogError(f"{host}: no answer in time") from error
    except urllib3.exceptions.HTTPError as error:
        raise CatalogError(f"{host}: the answer broke off") from error
    except (requests.RequestException, UnicodeError) as error:
        raise CatalogError(f"{host}: not reachable ({type(error).__name__})") from error


def _read(file: Path) -> Fetched:
    try:
        with file.open("rb") as opened:
            return Fetched(_limited(iter(lambda: opened.read(_CHUNK), b""), float("inf")))
    except (OSError, ValueError) as error:
        if isinstance(error, CatalogError):
            raise CatalogError(f"{file.name}: {error}") from error
        raise CatalogError(f"{file.name}: {getattr(error, 'strerror', None) or 'cannot be read'}") from error
