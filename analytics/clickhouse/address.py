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
    """Returns a `clickhouse://` or `clickhouses://` URL whose path is the database's name with the suffix.

    The embedded engine takes another port at every start, so clients read the address again after a lost connection.
    Raises AnalyticsUnavailableError when no engine is announced.
    """
    parts = urlsplit(_elsewhere.get() or settings.CLICKHOUSE_URL or _announced())
    database = parts.path.strip("/") or settings.CLICKHOUSE_DATABASE
    return urlunsplit(parts._replace(path=f"/{database}{suffix}"))


def database() -> str:
    return urlsplit(resolve_url()).path.strip("/")


@contextmanager
def at(url: str) -> Iterator[None]:
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
