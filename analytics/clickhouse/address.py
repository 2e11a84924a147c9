"""The address of ClickHouse: the configured server, or the embedded engine that `manage.py serve` announced."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from analytics.errors import AnalyticsUnavailableError

_ADDRESS_FILE = "clickhouse.url"


def resolve_url() -> str:
    """Returns the address as a `clickhouse://` or `clickhouses://` URL with a database in its path.

    The embedded engine takes another port with every start, so the address is read again after each lost connection.
    Raises AnalyticsUnavailableError when no engine is announced.
    """
    url = settings.CLICKHOUSE_URL or _announced()
    if urlsplit(url).path.strip("/"):
        return url
    base, separator, options = url.partition("?")
    return f"{base.rstrip('/')}/{settings.CLICKHOUSE_DATABASE}{separator}{options}"


def _announced() -> str:
    path = Path(settings.RUN_DIR) / _ADDRESS_FILE
    try:
        announced = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        announced = ""
    if not announced:
        raise AnalyticsUnavailableError("The analytics store is not running.")
    return f"clickhouse://127.0.0.1:{announced}" if announced.isdigit() else announced
