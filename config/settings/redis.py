"""Redis: the server at REDIS_URL, else the one that `manage.py serve` runs on this VAR_DIR."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from config import env
from config.settings.paths import RUN_DIR, announced_address

# A socket's path has to fit into 108 bytes (Linux; 104 elsewhere), the closing zero included.
_LONGEST_SOCKET_PATH = 103


def _embedded_socket() -> Path:
    """The socket of the server that `serve` starts: known before it runs, so that a command started first finds it."""
    socket = RUN_DIR / "redis.sock"
    if len(os.fsencode(socket)) <= _LONGEST_SOCKET_PATH:
        return socket
    name = hashlib.sha256(os.fsencode(RUN_DIR)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"prompt-gateway-{os.getuid()}-{name}" / "redis.sock"


EMBEDDED_REDIS_URL = f"unix://{_embedded_socket()}"

REDIS_URL = (
    env.url("REDIS_URL", schemes=("redis", "rediss", "unix")) or announced_address("redis") or EMBEDDED_REDIS_URL
)
REDIS_IS_EMBEDDED = env.url("REDIS_URL", schemes=("redis", "rediss", "unix")) is None


def with_scheme(url: str, *, unix: str) -> str:
    """The same address for libraries that name the socket scheme otherwise (Celery: `redis+socket://`)."""
    return url.replace("unix://", f"{unix}://", 1) if url.startswith("unix://") else url
