from __future__ import annotations

from pathlib import Path

from config import env

BASE_DIR = Path(__file__).resolve().parent.parent.parent

# The folder of everything the service writes on this machine: SQLite, engines, spool, generated secrets, addresses.
VAR_DIR = env.path("VAR_DIR", BASE_DIR / "var")
RUN_DIR = VAR_DIR / "run"


def announced_address(service: str) -> str | None:
    """Returns the address that `manage.py serve` wrote for an embedded service; None if none runs on this VAR_DIR."""
    try:
        return (RUN_DIR / f"{service}.url").read_text(encoding="utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
