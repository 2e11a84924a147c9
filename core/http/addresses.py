from __future__ import annotations

from pathlib import Path

from django.conf import settings

# These addresses can be listened on and not connected to.
_ANY = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "[::]": "[::1]"}  # noqa: S104 - compared with, not bound to


def public_url() -> str:
    """Returns the base URL without a trailing slash; an SDK's base URL is this and `/api/gateway/v1`.

    It is PUBLIC_URL, else what a running `manage.py serve` announced, else HOST and PORT.
    """
    if settings.PUBLIC_URL:
        return str(settings.PUBLIC_URL).rstrip("/")
    return _announced(Path(settings.RUN_DIR) / "gateway.url") or _configured()


def _announced(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip().rstrip("/") or None
    except FileNotFoundError:
        return None


def _configured() -> str:
    host: str = settings.HOST
    host = _ANY.get(host, f"[{host}]" if ":" in host and not host.startswith("[") else host)
    return f"http://{host}:{settings.PORT}"
