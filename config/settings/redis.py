from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from config import env
from config.settings.paths import RUN_DIR, announced_address
from core.redis.address import parse

# The path of a Unix socket has to fit into 108 bytes (Linux; 104 elsewhere), including the terminating zero.
_MAX_SOCKET_PATH = 103


def _embedded_socket() -> Path:
    """Returns the embedded Redis' socket, known before the server runs, so that other commands find it."""
    socket = RUN_DIR / "redis.sock"
    if len(os.fsencode(socket)) <= _MAX_SOCKET_PATH:
        return socket
    name = hashlib.sha256(os.fsencode(RUN_DIR)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"prompt-gateway-{os.getuid()}-{name}" / "redis.sock"


EMBEDDED_REDIS_URL = f"unix://{_embedded_socket()}"


def _checked(raw: str) -> str | None:
    parse(raw)
    return raw


_GIVEN = env.parsed("REDIS_URL", _checked, None)
REDIS_URL = _GIVEN or announced_address("redis") or EMBEDDED_REDIS_URL
REDIS_IS_EMBEDDED = _GIVEN is None
# An idle connection is pinged this often: proxies close those that have been idle for a minute or more.
REDIS_PING_SECONDS = env.number("REDIS_PING_SECONDS", 20.0, minimum=0.1, maximum=3600)
