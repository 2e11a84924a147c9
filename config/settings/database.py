"""The SQL database: SQLite in WAL mode by default, PostgreSQL by DATABASE_URL."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from config import env
from config.settings.paths import VAR_DIR


def _sqlite(name: str) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": name,
        "OPTIONS": {
            "timeout": 20,
            # SQLite cannot retry a transaction that reads before it writes, so each takes the write lock when it
            # begins.
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
        },
    }


def _postgresql(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    host = options.pop("host", None) or unquote(parts.hostname or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or ""),
        "OPTIONS": options,
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        # A server-side cursor outlives its transaction, which a pooler by transaction gives to another connection
        # (https://docs.djangoproject.com/en/5.2/ref/databases/#transaction-pooling-and-server-side-cursors).
        "DISABLE_SERVER_SIDE_CURSORS": True,
    }


def _database() -> dict[str, Any]:
    url = env.url("DATABASE_URL", schemes=("postgresql", "postgres", "sqlite"))
    if url is None:
        env.make_folder("VAR_DIR", VAR_DIR)
        return _sqlite(str(VAR_DIR / "db.sqlite3"))
    if url.startswith("sqlite:"):
        return _sqlite(unquote(urlsplit(url).path))
    return _postgresql(url)


DATABASES = {"default": _database()}
