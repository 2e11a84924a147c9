"""A circuit breaker that opens while the store is silent, so that no request waits long for figures.

A store that is down refuses connections at once and needs no circuit breaker. One that hangs (suspended, out of memory,
cut off) accepts connections and never answers, but a heavy query is silent too. So once a query has waited for some
time, a separate connection probes the store. If the probe fails, the circuit opens: waiting queries are aborted, new
ones fail at once, and probes go on until one succeeds.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clickhouse_driver import Client
from clickhouse_driver import errors as driver_errors
from django.conf import settings

from analytics.clickhouse.address import resolve_url
from analytics.clickhouse.connections import new_client
from analytics.errors import AnalyticsUnavailableError
from core.processes.background_tasks import keep_thread_running

logger = logging.getLogger("analytics.clickhouse")

_LOOK_SECONDS = 0.05
_SIGN_EVERY_SECONDS = 0.5


class Liveness:
    """A thread-safe circuit breaker in front of the store.

    `is_alive(seconds)` probes the store with that timeout. `silent_seconds()` is the maximum time from a query to its
    refusal: half passes before the probe, half is the probe's timeout. The breaker's thread starts with the first query
    and sleeps while there is none.
    """

    def __init__(self, *, is_alive: Callable[[float], bool], silent_seconds: Callable[[], float]) -> None:
        self._is_alive = is_alive
        self._silent_seconds = silent_seconds
        self._news = threading.Condition()
        self._waiting: dict[object, tuple[float, Client]] = {}
        self._thread: threading.Thread | None = None
        self._open = False

    def require(self) -> None:
        if self._open:
            raise AnalyticsUnavailableError("The analytics store does not answer.")

    @contextmanager
    def watched(self, client: Client) -> Iterator[None]:
        token = object()
        with self._news:
            self._waiting[token] = (time.monotonic(), client)
            if self._thread is None:
                self._thread = keep_thread_running("analytics.liveness", self._watch)
            self._news.notify()
        try:
            yield
        finally:
            with self._news:
                del self._waiting[token]

    def _watch(self) -> None:
        probed_at = float("-inf")
        while True:
            with self._news:
                while not (self._waiting or self._open):
                    self._news.wait()
                now = time.monotonic()
                oldest = min((since for since, _ in self._waiting.values()), default=now)
            half = self._silent_seconds() / 2
            suspicious = self._open or now - oldest > half
            if suspicious and now - probed_at > _SIGN_EVERY_SECONDS:
                self._set_open(not self._is_alive(half))
                probed_at = time.monotonic()
            if self._open:
                self._let_go()
            time.sleep(_LOOK_SECONDS)

    def _set_open(self, is_open: bool) -> None:
        if is_open != self._open:
            logger.warning("store.silent" if is_open else "store.back")
        self._open = is_open

    def _let_go(self) -> None:
        """This repeats while the circuit is open, because the driver reconnects after a failed ping."""
        with self._news:
            clients = [client for _, client in self._waiting.values()]
        for client in clients:
            _hang_up(client)


def _hang_up(client: Client) -> None:
    connected: socket.socket | None = client.connection.socket
    if connected is not None:
        try:
            connected.shutdown(socket.SHUT_RDWR)
        except OSError:
            logger.debug("connection.gone")


def gives_sign(seconds: float) -> bool:
    try:
        client = new_client(resolve_url(), seconds, connect_seconds=seconds)
        try:
            # The hello of the protocol is answered while queries run.
            client.connection.force_connect()
        finally:
            client.disconnect()
    except (driver_errors.SocketTimeoutError, TimeoutError):
        return False
    except Exception as error:
        logger.debug("sign.refused error=%s", type(error).__name__)
    return True


def _new() -> Liveness:
    return Liveness(is_alive=gives_sign, silent_seconds=lambda: settings.CLICKHOUSE_SILENT_SECONDS)


_liveness = _new()


def liveness() -> Liveness:
    return _liveness


def _forget() -> None:
    global _liveness
    _liveness = _new()


# A forked worker has none of its parent's threads, and a lock may be held at the fork.
os.register_at_fork(after_in_child=_forget)
