from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.core.management import call_command

from tests.migrated import ROOT, place_database
from tests.services import START_SECONDS


def backup(place: Path | str, *words: str) -> str:
    out = io.StringIO()
    call_command("backup", str(place), *words, stdout=out)
    return out.getvalue().rpartition("backup: ")[2].strip().rpartition("/")[2]


def restore(place: Path | str, *words: str) -> str:
    out = io.StringIO()
    call_command("restore", str(place), *words, stdout=out)
    return out.getvalue()


def on_sqlite(var_dir: Path, *words: str, **environment: str) -> str:
    """Runs a command on the SQLite database of a VAR_DIR, which is made if missing; returns its output."""
    if not var_dir.exists():
        place_database(var_dir)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "SECRET_KEY", "ENCRYPTION_KEYS") if name in os.environ}
    finished = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env={**kept, "VAR_DIR": str(var_dir), **environment},
        capture_output=True,
        text=True,
        timeout=2 * START_SECONDS,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def manifest_of(place: Path, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((place / name / "manifest.json").read_text())
    return read


def tables_of(place: Path, name: str) -> dict[str, tuple[int, str]]:
    """Leaves out the audit log, which names backups."""
    files = manifest_of(place, name)["files"]
    return {file["name"]: (file["rows"], file["sha256"]) for file in files if "AuditEntry" not in file["name"]}
