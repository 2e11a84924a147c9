from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings


def folders() -> Iterator[tuple[str, Path]]:
    for name in ("VAR_DIR", "SPOOL_DIR", "GATEWAY_FILE_DIR"):
        yield name, getattr(settings, name)
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        yield "DATABASE_URL", Path(database["NAME"]).parent
    if settings.REDIS_IS_EMBEDDED:
        yield "VAR_DIR/redis", settings.VAR_DIR / "redis"
    if not settings.CLICKHOUSE_URL:
        yield "VAR_DIR/clickhouse", settings.VAR_DIR / "clickhouse"


def existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def disks() -> dict[str, Path]:
    found: dict[int, tuple[str, Path]] = {}
    for name, folder in folders():
        path = existing(folder)
        found.setdefault(path.stat().st_dev, (name, path))
    return dict(found.values())
