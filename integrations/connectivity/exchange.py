"""Sends one request to an address that a user entered: once, without redirects, within limits of time and size.

The rules of `integrations/transport` apply: the address is checked at connection time, the system's certificate
authorities are trusted, and proxies are read from the environment.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util.connection import create_connection

from integrations.connectivity.outcomes import Reason
from integrations.providers.base import UpstreamRequest
from integrations.transport.addresses import PrivateAddressError, literal_address
from integrations.transport.proxies import proxies_from_environment
from integrations.transport.request_head import Origin
from integrations.transport.resolver import AddressPolicy, any_address, as_named, blocking_lookup
from integrations.transport.tls import client_context

CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 10.0
TOTAL_SECONDS = 15.0
MAX_BYTES = 8 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024

Lookup = Callable[[str, int], list[str]]
"""A function that returns the addresses of a host. It raises OSError when there are none."""


class NoAnswerError(Exception):
    """The text names the host at most, and quotes nothing from the network layer."""

    def __init__(self, reason: Reason, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason
        self.problem = problem


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Sender:
    """With `allow_private` a public name may lead to a private address. `seconds` bound the whole call, however slowly
    the answer arrives, except the lookup of the name."""

    allow_private: bool = False
    lookup: Lookup = blocking_lookup
    tls: ssl.SSLContext | None = None
    seconds: float = TOTAL_SECONDS
    max_bytes: int = MAX_BYTES

    def send(self, request: UpstreamRequest) -> HttpAnswer:
        host = urlsplit(request.url).hostname or ""
        watch = _Watch(self.seconds)
        with requests.Session() as session, watch.running(), _translated_errors(host, watch):
            # The session must not read a .netrc or use another bundle of certificate authorities.
            session.trust_env = False
            proxies = _proxies(request.url)
            policy = any_address if self.allow_private or proxies else as_named
            adapter = _Adapter(_Dial(policy, self.lookup, watch), self.tls or client_context())
            session.mount("https://", adapter)
            session.mount("http://", adapter)
            with session.request(
                request.method,
                request.url,
                headers={**request.headers, "accept": "application/json", "accept-encoding": "identity"},
                data=request.body or None,
                timeout=(CONNECT_SECONDS, SILENCE_SECONDS),
                allow_redirects=False,
                stream=True,
                proxies=proxies,
            ) as response:
                body = _read(response, self.max_bytes)
            return HttpAnswer(response.status_code, {k.lower(): v for k, v in response.headers.items()}, body)


class _Watch:
    """Closes the connection at the deadline, since a socket's own timeout starts again with every byte."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.over = False
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    @contextmanager
    def running(self) -> Iterator[None]:
        timer = threading.Timer(self.seconds, self._end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def guard(self, connected: socket.socket) -> None:
        with self._lock:
            self._socket = connected
            if self.over:
                _shut(connected)

    def _end(self) -> None:
        with self._lock:
            self.over = True
            if self._socket is not None:
                _shut(self._socket)


def _shut(connected: socket.socket) -> None:
    try:
        connected.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # The connection has already ended, so there is nothing to close.


@dataclass(frozen=True, slots=True)
class _Dial:
    """Connects to exactly the address that the policy checked."""

    policy: AddressPolicy
    lookup: Lookup
    watch: _Watch

    def connect(self, host: str, port: int, options: Any) -> socket.socket:
        host = host.strip("[]")
        found = [host] if literal_address(host) is not None else self._looked_up(host, port)
        allowed = [text for text in found if (at := literal_address(text)) is not None and self.policy(host, at)]
        if not allowed:
            raise PrivateAddressError(host)
        failure: OSError | None = None
        for address in allowed:
            try:
                connected = create_connection((address, port), CONNECT_SECONDS, socket_options=options)
            except OSError as error:
                failure = error
            else:
                self.watch.guard(connected)
                return connected
        raise failure or OSError

    def _looked_up(self, host: str, port: int) -> list[str]:
        try:
            found = self.lookup(host, port)
        except OSError:
            found = []
        if not found:
            raise NoAnswerError(Reason.UNKNOWN_HOST, f"The name {host} leads nowhere.")
        return found


class _Plain(HTTPConnection):
    def __init__(self, *args: Any, dial: _Dial, **options: Any) -> None:
        super().__init__(*args, **options)
        self._dial = dial

    def _new_conn(self) -> socket.socket:
        connected = self._dial.connect(self.host, self.port or 80, self.socket_options)
        connected.settimeout(SILENCE_SECONDS)
        return connected


class _Secure(HTTPSConnection):
    def __init__(self, *args: Any, dial: _Dial, **options: Any) -> None:
        super().__init__(*args, **options)
        self._dial = dial

    def _new_conn(self) -> socket.socket:
        connected = self._dial.connect(self.host, self.port or 443, self.socket_options)
        connected.settimeout(SILENCE_SECONDS)
        return connected


class _Adapter(HTTPAdapter):
    def __init__(self, dial: _Dial, tls: ssl.SSLContext) -> None:
        self._dial = dial
        self._tls = tls
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options, ssl_context=self._tls)

    def proxy_manager_for(self, proxy: Any, **options: Any) -> Any:
        return super().proxy_manager_for(proxy, **options, ssl_context=self._tls)

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Does nothing: the TLS context already has its authorities, and `requests` would add a bundle of its own."""
        conn.cert_reqs = "CERT_REQUIRED"

    def get_connection_with_tls_context(self, *args: Any, **options: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **options)
        kind = _Secure if pool.scheme == "https" else _Plain
        pool.ConnectionCls = partial(kind, dial=self._dial)
        return pool


def _proxies(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    proxy = proxies_from_environment()(Origin(parts.scheme, parts.hostname or "", port))
    return {parts.scheme: proxy} if proxy else {}


def _read(response: requests.Response, limit: int) -> bytes:
    pieces, size = [], 0
    for piece in response.iter_content(_CHUNK_BYTES):
        size += len(piece)
        if size > limit:
            raise NoAnswerError(Reason.UNUSABLE_ANSWER, f"The answer is larger than {limit} bytes.")
        pieces.append(piece)
    return b"".join(pieces)


@contextmanager
def _translated_errors(host: str, watch: _Watch) -> Iterator[None]:
    """Raises the errors of requests and urllib3 as NoAnswerError, whose text never quotes the request."""
    started = time.monotonic()
    try:
        yield
    except NoAnswerError:
        raise
    except PrivateAddressError:
        problem = f"{host} leads into a private network (ALLOW_PRIVATE_UPSTREAMS permits it)."
        raise NoAnswerError(Reason.PRIVATE_ADDRESS, problem) from None
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        if watch.over or _is(error, TimeoutError, requests.Timeout, urllib3.exceptions.TimeoutError):
            seconds = time.monotonic() - started
            raise NoAnswerError(Reason.TIMEOUT, f"{host} did not answer within {seconds:.0f} seconds.") from None
        raise _connection_error(error, host) from None


def _connection_error(error: BaseException, host: str) -> NoAnswerError:
    if _is(error, ssl.SSLCertVerificationError):
        return NoAnswerError(Reason.TLS, f"The certificate of {host} is not trusted.")
    if _is(error, ssl.SSLError, requests.exceptions.SSLError):
        return NoAnswerError(Reason.TLS, f"{host} does not speak TLS as it should.")
    if _is(error, requests.exceptions.InvalidHeader, requests.exceptions.InvalidURL, UnicodeError):
        return NoAnswerError(Reason.INCOMPLETE, "The credential or the address cannot be sent as it is.")
    if _is(error, urllib3.exceptions.ProxyError):
        return NoAnswerError(Reason.UNREACHABLE, f"The proxy on the way to {host} cannot be reached.")
    if _is(error, ConnectionRefusedError):
        return NoAnswerError(Reason.UNREACHABLE, f"{host} refused the connection.")
    if _is(error, ConnectionError, urllib3.exceptions.ProtocolError):
        return NoAnswerError(Reason.UNREACHABLE, f"{host} ended the connection before it answered.")
    return NoAnswerError(Reason.UNREACHABLE, f"There is no connection to {host}.")


def _is(error: BaseException, *kinds: type[BaseException]) -> bool:
    seen: list[BaseException] = []
    waiting: list[Any] = [error]
    while waiting:
        current = waiting.pop()
        if not isinstance(current, BaseException) or current in seen:
            continue
        if isinstance(current, kinds):
            return True
        seen.append(current)
        waiting += [current.__cause__, current.__context__, getattr(current, "reason", None), *current.args]
    return False
