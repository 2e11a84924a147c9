"""Redis: the server at REDIS_URL, else the one that `manage.py serve` runs on this VAR_DIR."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from config import env
from config.settings.paths import RUN_DIR, announced_address

# The path of a Unix socket has to fit into 108 bytes (Linux; 104 elsewhere), including the terminating zero.
_MAX_SOCKET_PATH = 103


def _embedded_socket() -> Path:
    """Returns the socket of the embedded Redis, known before the server runs, so that other commands find it."""
    socket = RUN_DIR / "redis.sock"
    if len(os.fsencode(socket)) <= _MAX_SOCKET_PATH:
        return socket
    name = hashlib.sha256(os.fsencode(RUN_DIR)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"prompt-gateway-{os.getuid()}-{name}" / "redis.sock"


EMBEDDED_REDIS_URL = f"unix://{_embedded_socket()}"

REDIS_URL = (
    env.url("REDIS_URL", schemes=("redis", "rediss", "unix")) or announced_address("redis") or EMBEDDED_REDIS_URL
)
REDIS_IS_EMBEDDED = env.url("REDIS_URL", schemes=("redis", "rediss", "unix")) is None


def with_scheme(url: str, *, unix: str) -> str:
    """Returns the Redis address with the socket scheme of another library (Celery: `redis+socket://`)."""
    return url.replace("unix://", f"{unix}://", 1) if url.startswith("unix://") else url
