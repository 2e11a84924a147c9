from __future__ import annotations

import logging
import os
import resource
import shutil
import signal
import socket
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

from analytics.clickhouse.engine.chdb_connection import DEFAULT_MEMORY_LIMIT, ChdbEngine
from analytics.clickhouse.engine.code_pages import release_code_pages
from analytics.clickhouse.engine.empty_parts import leave_if_parts_are_empty, watch_for_empty_parts
from analytics.clickhouse.engine.lock import directory_lock
from analytics.clickhouse.engine.session import Access, Session
from analytics.clickhouse.engine.watcher import Watcher
from core.processes.background_tasks import keep_thread_running

logger = logging.getLogger("analytics.engine")

_TEMPORARY = "temporary"
_HOST = "127.0.0.1"
_MAX_CLIENTS = 256
# A client that has not shown the password yet takes no place of those that have.
_MAX_STRANGERS = 64
_SEND_SECONDS = 300.0
_STOP_SECONDS = 10.0


@dataclass(frozen=True)
class ServerOptions:
    """`port` 0 takes a free port. The files are written once the engine serves, and removed when it stops."""

    directory: Path
    backups: Path
    access: Access
    port: int = 0
    port_file: Path | None = None
    url_file: Path | None = None
    memory_limit: int = DEFAULT_MEMORY_LIMIT


class EngineServer:
    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._stop = threading.Event()
        self._clients: dict[socket.socket, threading.Thread] = {}
        self._strangers: set[socket.socket] = set()
        self._clients_lock = threading.Lock()
        self._engine = ChdbEngine(
            options.directory.absolute(), backups=options.backups.absolute(), memory_limit=options.memory_limit
        )
        self._watcher = Watcher(self._engine)

    def serve(self) -> None:
        """Serves until SIGTERM or SIGINT; must run in the main thread.

        Raises DirectoryLockedError when another engine has the directory, OSError when the port is taken.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        _raise_file_limit()
        os.umask(0o077)
        # Parameters and literals without a time zone mean UTC, as in everything this service stores.
        os.environ["TZ"] = "UTC"
        time.tzset()
        with directory_lock(self._options.directory):
            self._keep_temporary_files()
            self._engine.open(self._options.access.database)
            release_code_pages()
            with socket.create_server((_HOST, self._options.port), backlog=128) as listener:
                self._run(listener)

    def _keep_temporary_files(self) -> None:
        """Beside the tables, because `/tmp` may be read-only and a killed engine leaves its temporary files."""
        folder = self._options.directory.absolute() / _TEMPORARY
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        os.environ["TMPDIR"] = str(folder)

    def _run(self, listener: socket.socket) -> None:
        port = listener.getsockname()[1]
        self._watcher.start()
        acceptor = keep_thread_running("engine.acceptor", partial(self._accept, listener))
        keep_thread_running("engine.parts", partial(watch_for_empty_parts, self._options.directory, self._stop))
        self._announce(port)
        logger.info("engine.started port=%s version=%s", port, ".".join(map(str, self._engine.version)))
        self._stop.wait()
        self._withdraw()
        listener.shutdown(socket.SHUT_RDWR)
        acceptor.join()
        self._stop_clients()
        self._watcher.stop()
        leave_if_parts_are_empty(self._options.directory)
        self._engine.close()
        logger.info("engine.stopped")

    def _accept(self, listener: socket.socket) -> None:
        while not self._stop.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                if not self._stop.is_set():
                    logger.exception("engine.accept_failed")
                    self._stop.wait(0.1)
                continue
            self._admit(client)

    def _admit(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Clients may be idle between queries without limit, but not in the middle of taking an answer.
        seconds = int(_SEND_SECONDS).to_bytes(8, "little") + bytes(8)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
        thread = threading.Thread(target=self._serve_client, args=(client,), name="engine-session", daemon=True)
        with self._clients_lock:
            strangers = len(self._strangers)
            full = strangers >= _MAX_STRANGERS or len(self._clients) - strangers >= _MAX_CLIENTS
            if not full:
                self._clients[client] = thread
                self._strangers.add(client)
        if full:
            logger.warning("client.refused clients=%s strangers=%s", len(self._clients), strangers)
            client.close()
        else:
            thread.start()

    def _serve_client(self, client: socket.socket) -> None:
        session = Session(
            client,
            engine=self._engine,
            watcher=self._watcher,
            access=self._options.access,
            on_welcome=lambda: self._forget_stranger(client),
        )
        try:
            session.run()
        finally:
            with self._clients_lock:
                self._strangers.discard(client)
                del self._clients[client]

    def _forget_stranger(self, client: socket.socket) -> None:
        with self._clients_lock:
            self._strangers.discard(client)

    def _stop_clients(self) -> None:
        """Closes the sending side only: the watcher then kills the client's query, and its session ends."""
        deadline = time.monotonic() + _STOP_SECONDS
        with self._clients_lock:
            clients = list(self._clients.items())
            for client, _ in clients:
                _close_receiving(client)
        for _, thread in clients:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for _, thread in clients):
            logger.error("engine.stop_timed_out")
            # Leaving the interpreter while a thread is inside chDB is a segmentation fault.
            os._exit(1)

    def _announce(self, port: int) -> None:
        if self._options.port_file is not None:
            write_atomically(self._options.port_file, f"{port}\n")
        if self._options.url_file is not None:
            access = self._options.access
            user, password, database = (
                quote(text, safe="") for text in (access.user, access.password, access.database)
            )
            url = f"clickhouse://{user}:{password}@{_HOST}:{port}/{database}"
            write_atomically(self._options.url_file, f"{url}\n")

    def _withdraw(self) -> None:
        for path in (self._options.port_file, self._options.url_file):
            if path is not None:
                path.unlink(missing_ok=True)


def write_atomically(path: Path, text: str) -> None:
    """Readers see the old text or the new one. Only this user can read it: it may hold the password."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)  # A killed process with this number may have left the file, with any mode.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


def _close_receiving(client: socket.socket) -> None:
    try:
        client.shutdown(socket.SHUT_RD)
    except OSError:
        logger.debug("client.gone")


def _raise_file_limit() -> None:
    # Each thread of a burst holds three descriptors and a MergeTree part one per column file.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
