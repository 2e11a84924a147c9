"""The SQL database: SQLite in WAL mode by default, PostgreSQL by DATABASE_URL, which libpq's own parser reads.

https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote, urlsplit

from config import env
from config.settings.paths import VAR_DIR

_EXPECTED = (
    "expected sqlite:/path or postgresql://user:password@host:port,host:port/name?option=value with options of libpq"
)
# The service writes to its database. A replica would also be behind: a revoked key would still be found there.
_WRITABLE = ("read-write", "primary")
_MAX_PORT = 65535
# Without these, a server whose host has vanished is waited for as long as the kernel does, a quarter of an hour. All
# but the last are in seconds, that one is in milliseconds.
_PATIENCE = {
    "connect_timeout": "5",
    "keepalives_idle": "20",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
_IDLE_SECONDS = 60

# How many connections the threads of a process share; 0, the default, is one for each thread. A start takes two: one
# for its lock and one for the migrations.
_POOL_SIZE = env.integer("DATABASE_POOL_SIZE", 0, minimum=2, maximum=1000)
# How long a start waits for a server that is away, and for tables that another host makes.
DATABASE_WAIT_SECONDS = env.number("DATABASE_WAIT_SECONDS", 300, minimum=0, maximum=86_400)
_POOL_SECONDS = env.number("DATABASE_POOL_SECONDS", 10, minimum=0.1)


def _sqlite(name: str) -> dict[str, Any]:
    return {
        "ENGINE": "core.sqlite",
        "NAME": name,
        "OPTIONS": {
            "timeout": 20,
            # SQLite cannot retry a transaction that reads before it writes, so each takes the write lock when it
            # begins.
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
        },
        # A new connection reads the whole schema first, which takes 5 ms of CPU.
        "CONN_MAX_AGE": _IDLE_SECONDS,
        "CONN_HEALTH_CHECKS": True,
    }


def _postgresql(url: str) -> dict[str, Any]:
    parts = _libpq(url)
    if not (parts.get("dbname") or parts.get("service")):
        raise ValueError(f"{_EXPECTED}; the name of the database is missing")
    _check_ports(parts)
    if parts.get("target_session_attrs", _WRITABLE[0]) not in _WRITABLE:
        raise ValueError(f"target_session_attrs has to be {' or '.join(_WRITABLE)}: the service writes to its database")
    django = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    return {
        "ENGINE": "core.postgresql",
        **{name: parts.pop(option, "") for name, option in django.items()},
        "OPTIONS": {
            "target_session_attrs": _WRITABLE[0],
            "fallback_application_name": "prompt-gateway",
            **_PATIENCE,
            **parts,
            **_pool(),
        },
        # A pool keeps connections itself.
        "CONN_MAX_AGE": 0 if _POOL_SIZE else _IDLE_SECONDS,
        "CONN_HEALTH_CHECKS": True,
        # A server-side cursor outlives its transaction, which a pooler by transaction gives to another connection
        # (https://docs.djangoproject.com/en/5.2/ref/databases/#transaction-pooling-and-server-side-cursors).
        "DISABLE_SERVER_SIDE_CURSORS": True,
    }


def _libpq(url: str) -> dict[str, str]:
    """Returns the options by libpq's names. Raises ValueError, which quotes no part of the address that may be a
    secret."""
    import psycopg  # An installation on SQLite needs no driver.
    from psycopg.conninfo import conninfo_to_dict

    try:
        return {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError:
        query = url.partition("?")[2]
        known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
        named = [] if "@" in query else re.findall(r"(?:^|&)([a-z_]+)=", query)
        unknown = next((name for name in named if name not in known), None)
        raise ValueError(_EXPECTED + (f"; libpq has no option {unknown}" if unknown else "")) from None


def _check_ports(parts: dict[str, str]) -> None:
    hosts, ports = (parts.get(name, "").split(",") for name in ("host", "port"))
    if not all(port == "" or (port.isdecimal() and 0 < int(port) <= _MAX_PORT) for port in ports):
        raise ValueError(f"{_EXPECTED}; a port is a number from 1 to {_MAX_PORT}")
    if len(ports) not in (1, len(hosts)):
        raise ValueError(f"{_EXPECTED}; it names {len(hosts)} hosts and {len(ports)} ports")


def _pool() -> dict[str, Any]:
    if not _POOL_SIZE:
        return {}
    pool = {"min_size": 0, "max_size": _POOL_SIZE, "timeout": _POOL_SECONDS, "max_idle": _IDLE_SECONDS}
    return {"pool": pool}


def _read(url: str) -> dict[str, Any]:
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        path = unquote(urlsplit(url).path)
        # SQLite's own form of an address says behind a ? that the database is in memory. Without that it is a file.
        if path.startswith("file:"):
            raise ValueError(_EXPECTED)
        return _sqlite(path)
    if scheme not in ("postgresql", "postgres"):
        raise ValueError(_EXPECTED)
    return _postgresql(url)


def _database() -> dict[str, Any]:
    found = env.parsed("DATABASE_URL", _read, None)
    if found is None:
        env.make_folder("VAR_DIR", VAR_DIR)
        return _sqlite(str(VAR_DIR / "db.sqlite3"))
    return found


DATABASES = {"default": _database()}
