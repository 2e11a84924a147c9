"""The address of ClickHouse: the configured server, or the embedded engine that `manage.py serve` announced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings

from analytics.errors import AnalyticsUnavailableError

_ADDRESS_FILE = "clickhouse.url"

_elsewhere: ContextVar[str | None] = ContextVar("clickhouse_url", default=None)


def resolve_url(suffix: str = "") -> str:
    """Returns the address as a `clickhouse://` or `clickhouses://` URL with a database in its path, whose name gets
    the suffix.

    The embedded engine takes another port with every start, so the address is read again after each lost connection.
    Raises AnalyticsUnavailableError when no engine is announced.
    """
    parts = urlsplit(_elsewhere.get() or settings.CLICKHOUSE_URL or _announced())
    database = parts.path.strip("/") or settings.CLICKHOUSE_DATABASE
    return urlunsplit(parts._replace(path=f"/{database}{suffix}"))


def database() -> str:
    """Returns the name of the store's database."""
    return urlsplit(resolve_url()).path.strip("/")


@contextmanager
def at(url: str) -> Iterator[None]:
    """Has the statements of this context go to another address."""
    token = _elsewhere.set(url)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def _announced() -> str:
    path = Path(settings.RUN_DIR) / _ADDRESS_FILE
    try:
        announced = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        announced = ""
    if not announced:
        raise AnalyticsUnavailableError("The analytics store is not running.")
    return f"clickhouse://127.0.0.1:{announced}" if announced.isdigit() else announced
