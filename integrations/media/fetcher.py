"""Fetches the files that a request names by address, for providers that take bytes only.

Anyone who may send a request chooses the addresses, so nothing here trusts them: only public addresses are connected
to, each redirect is checked like the first address, sizes and times are bounded, and no server decides what a file is.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp
from django.conf import settings

from integrations.errors import MediaBusyError, MediaError
from integrations.media.client import MediaClient
from integrations.media.kinds import is_text, media_type_of, promised_by
from integrations.media.target import Target, target_of
from integrations.providers.base import Media
from integrations.transport.addresses import PrivateAddressError
from integrations.transport.proxies import ProxyFor, proxies_from_environment
from integrations.transport.resolver import Lookup

MAX_FILES = 20
"""The maximum number of files that one request may name."""
MAX_REDIRECTS = 3
_PER_REQUEST = 4
_PER_WORKER = 16
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
logger = logging.getLogger("integrations.media")


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """`max_bytes` bounds a file, `request_bytes` all files of a request together, `seconds` fetching all."""

    max_bytes: int
    request_bytes: int
    seconds: float
    allow_private: bool

    @classmethod
    def configured(cls) -> MediaLimits:
        return cls(
            settings.MEDIA_MAX_BYTES, settings.MEDIA_REQUEST_BYTES, settings.MEDIA_SECONDS, settings.ALLOW_PRIVATE_MEDIA
        )


@dataclass(slots=True)
class _Batch:
    bytes_left: int
    deadline: float
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_PER_REQUEST))


class MediaFetcher:
    """Bound to the event loop on which it fetches first; no connection is opened before. By default the limits are the
    configured ones and the proxies those of the environment."""

    def __init__(
        self,
        limits: MediaLimits | None = None,
        *,
        proxy_for: ProxyFor | None = None,
        tls: ssl.SSLContext | None = None,
        lookup: Lookup | None = None,
    ) -> None:
        self._limits = limits or MediaLimits.configured()
        self._proxy_for = proxy_for
        self._tls = tls
        self._lookup = lookup
        self._slots = asyncio.Semaphore(_PER_WORKER)
        self._client: MediaClient | None = None
        self._closed = False

    async def fetch(self, urls: Sequence[str]) -> dict[str, Media]:
        targets = {url: target_of(url) for url in urls}
        if len(targets) > MAX_FILES:
            raise MediaError("", f"too many: a request may name {MAX_FILES} files by address")
        if not targets:
            return {}
        batch = _Batch(self._limits.request_bytes, asyncio.get_running_loop().time() + self._limits.seconds)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {url: group.create_task(self._fetch(target, batch)) for url, target in targets.items()}
        except BaseExceptionGroup as failed:
            # The causes are left out, since aiohttp's exceptions print whole URLs.
            raise _first(failed) from None
        return {url: task.result() for url, task in tasks.items()}

    async def close(self) -> None:
        self._closed = True
        if self._client is not None:
            await self._client.close()

    async def _fetch(self, target: Target, batch: _Batch) -> Media:
        started = False
        try:
            async with asyncio.timeout_at(batch.deadline), batch.turns, self._slots:
                started = True
                return await self._follow(target, batch)
        except TimeoutError:
            if not started:
                raise MediaBusyError("Too many files are being fetched right now. Try again later.") from None
            raise MediaError(target.host, "did not arrive in time") from None
        except PrivateAddressError:
            logger.warning("media.refused", extra={"host": target.host})
            raise MediaError(target.host, "is on a private network") from None
        except (aiohttp.ClientError, OSError) as error:
            raise MediaError(target.host, _problem(error)) from None

    async def _follow(self, target: Target, batch: _Batch) -> Media:
        client = self._opened()
        for _ in range(MAX_REDIRECTS + 1):
            response = await client.get(target)
            try:
                if response.status not in _REDIRECTS:
                    return await self._read(response, target, batch)
                location = response.headers.get("location", "")
            finally:
                response.close()
            target = target.redirected(location)
        raise MediaError(target.host, f"is behind more than {MAX_REDIRECTS} redirects")

    async def _read(self, response: aiohttp.ClientResponse, target: Target, batch: _Batch) -> Media:
        if response.status != 200:
            raise MediaError(target.host, f"could not be fetched: the answer was {response.status}")
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise MediaError(target.host, "came compressed, which was not asked for")
        if (response.content_length or 0) > self._limits.max_bytes:
            raise self._too_large(target)
        received = bytearray()
        async for piece in response.content.iter_any():
            received += piece
            batch.bytes_left -= len(piece)
            if len(received) > self._limits.max_bytes:
                raise self._too_large(target)
            if batch.bytes_left < 0:
                raise MediaError(
                    target.host, f"is too much: the files of a request may hold {self._limits.request_bytes} bytes"
                )
        if not received:
            raise MediaError(target.host, "is empty")
        data = bytes(received)
        return Media(_media_type(data, response.headers.get("content-type", ""), target), data)

    def _too_large(self, target: Target) -> MediaError:
        return MediaError(target.host, f"is larger than {self._limits.max_bytes} bytes")

    def _opened(self) -> MediaClient:
        if self._closed:
            raise MediaBusyError("This worker is about to stop. Try again.")
        if self._client is None:
            self._client = MediaClient(
                allow_private=self._limits.allow_private,
                proxy_for=self._proxy_for or proxies_from_environment(),
                tls=self._tls,
                lookup=self._lookup,
            )
        return self._client


def _media_type(data: bytes, declared: str, target: Target) -> str:
    name = target.url.path
    found = media_type_of(data, declared=declared, name=name)
    if found is None:
        raise MediaError(target.host, "is of a kind that is not known")
    promised = promised_by(name) or ""
    if is_text(found) and (promised == "application/pdf" or promised.startswith(("image/", "audio/", "video/"))):
        raise MediaError(target.host, f"is {found}, not {promised} as its address promises")
    return found


def _problem(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "cannot be fetched: the server's certificate is not trusted"
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError):
        return "cannot be fetched: no connection"
    if isinstance(error, aiohttp.ClientResponseError):
        return "cannot be fetched: the server does not speak HTTP"
    return "did not arrive whole: the connection broke"


def _first(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    return next((error for error in failed.exceptions if isinstance(error, MediaError)), failed.exceptions[0])
