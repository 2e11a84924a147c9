"""Serves `/metrics` on a port of its own without a key, for a Prometheus in the operator's network."""

from __future__ import annotations

import threading
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server

from config.monitor.exposition import HostCollector


class Endpoint:
    """An HTTP server in threads of its own. Raises OSError when the address is taken."""

    def __init__(self, host: str, port: int) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(HostCollector())
        self._server: WSGIServer
        self._thread: threading.Thread
        self._server, self._thread = start_http_server(port, host, registry)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_port}/metrics"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
