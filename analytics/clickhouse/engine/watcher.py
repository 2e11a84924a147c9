from __future__ import annotations

import logging
import selectors
import socket
import threading
from dataclasses import dataclass

from analytics.clickhouse.engine.chdb_connection import ChdbEngine
from analytics.clickhouse.engine.errors import EngineError
from analytics.clickhouse.engine.protocol import ClientPacket

logger = logging.getLogger("analytics.engine")

_REPEAT_SECONDS = 0.1


@dataclass(eq=False)
class RunningQuery:
    """`cancelled` is set when the client asked to cancel and waits for the answer."""

    client: socket.socket
    tag: str
    cancelled: bool = False


class Watcher(threading.Thread):
    """One thread watches all clients' sockets: a hang-up or a cancel packet kills the query.

    Session threads cannot: they are inside chDB while their query runs.
    """

    def __init__(self, engine: ChdbEngine) -> None:
        super().__init__(name="engine-watcher", daemon=True)
        self._engine = engine
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._watched: set[RunningQuery] = set()
        self._doomed: set[RunningQuery] = set()
        self._stopping = False
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._selector.register(self._wake_reader, selectors.EVENT_READ)

    def watch(self, query: RunningQuery) -> None:
        with self._lock:
            self._selector.register(query.client, selectors.EVENT_READ, query)
            self._watched.add(query)

    def forget(self, query: RunningQuery) -> None:
        """Must be called before the client's socket is closed."""
        with self._lock:
            self._doomed.discard(query)
            self._unwatch(query)

    def stop(self) -> None:
        self._stopping = True
        self._wake_writer.send(b"\0")
        self.join()
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()

    def run(self) -> None:
        while not self._stopping:
            # A kill can come before the engine has listed the query, so it is repeated until the query has ended.
            for key, _ in self._selector.select(_REPEAT_SECONDS if self._doomed else None):
                if isinstance(key.data, RunningQuery):
                    self._look_at(key.data)
            with self._lock:
                doomed = list(self._doomed)
            for query in doomed:
                self._kill(query)

    def _look_at(self, query: RunningQuery) -> None:
        try:
            first = query.client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            first = b""  # The peer has reset the connection, which is a hang-up too.
        with self._lock:
            if not self._unwatch(query):
                return  # The query ended meanwhile, and its socket may be closed.
            query.cancelled = first == bytes((ClientPacket.CANCEL,))
            if query.cancelled or not first:
                self._doomed.add(query)

    def _unwatch(self, query: RunningQuery) -> bool:
        """Returns False if the query was not watched. The caller holds the lock."""
        if query not in self._watched:
            return False
        self._watched.remove(query)
        self._selector.unregister(query.client)
        return True

    def _kill(self, query: RunningQuery) -> None:
        try:
            self._engine.kill(query.tag)
        except EngineError as error:
            logger.warning("query.kill_failed code=%s", error.code)
