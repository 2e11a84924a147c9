"""Redis: the server at REDIS_URL, else the one that `manage.py serve` runs on this VAR_DIR."""

from __future__ import annotations

from config import env
from config.settings.paths import RUN_DIR, announced_address

# The socket of the server that `serve` starts: known before it runs, so that a command started first still finds it.
EMBEDDED_REDIS_URL = f"unix://{RUN_DIR / 'redis.sock'}"

REDIS_URL = (
    env.url("REDIS_URL", schemes=("redis", "rediss", "unix")) or announced_address("redis") or EMBEDDED_REDIS_URL
)
REDIS_IS_EMBEDDED = env.url("REDIS_URL", schemes=("redis", "rediss", "unix")) is None


def with_scheme(url: str, *, unix: str) -> str:
    """The same address for libraries that name the socket scheme otherwise (Celery: `redis+socket://`)."""
    return url.replace("unix://", f"{unix}://", 1) if url.startswith("unix://") else url
