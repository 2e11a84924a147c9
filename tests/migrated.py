"""A migrated SQLite database without rows, for the services of tests that are not about a first start."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_NAME = "db.sqlite3"

# The content of the database, once the first service of the run has asked for it.
_made: list[bytes] = []


def place_database(var_dir: Path) -> None:
    """Makes the folder VAR_DIR, unless it is there, and puts the database into it.

    A run of the suite migrates once: the migrations are a fifth of the CPU of a first start.
    """
    if not _made:
        _made.append(_migrate())
    var_dir.mkdir(mode=0o700, exist_ok=True)
    database = var_dir / _NAME
    database.touch(mode=0o600, exist_ok=False)
    database.write_bytes(_made[0])


def _migrate() -> bytes:
    with tempfile.TemporaryDirectory(prefix="migrated-") as folder:
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "VAR_DIR": folder}
        command = [sys.executable, "manage.py", "migrate", "--verbosity", "0", "--skip-checks"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert [path.name for path in Path(folder).glob(f"{_NAME}*")] == [_NAME], (
            "there is more of it than the one file"
        )
        return (Path(folder) / _NAME).read_bytes()
