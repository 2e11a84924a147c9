from __future__ import annotations

import base64
import os
import secrets
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import psutil

from tests.services import Service, start_clickhouse, start_postgresql, start_redis

ROOT = Path(__file__).resolve().parent.parent


class Stores:
    """The stores, in `folder`, which other users must be able to enter; they end with the stack.

    `environment` has what all hosts share, as docs/operations.md names it: three addresses and two secrets.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.postgresql, self.database_url = start_postgresql(folder / "pg")
        stack.callback(lambda: self.postgresql.stop(signal.SIGINT))
        self.redis, self.redis_url = start_redis(folder / "redis")
        # A test may have started another Redis at this place.
        stack.callback(lambda: self.redis.stop())
        url_file = folder / "clickhouse.url"
        self.engine = start_clickhouse(folder / "clickhouse", ROOT / "manage.py", url_file)
        stack.callback(self.engine.stop)
        self.clickhouse_url = url_file.read_text(encoding="utf-8").strip()
        self.environment = {
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "CLICKHOUSE_URL": self.clickhouse_url,
            **shared_secrets(),
        }

    def freeze(self) -> None:
        """Stops all processes with SIGSTOP: connections stay open and new ones are made, but nobody answers."""
        for store in self._all:
            store.send(signal.SIGSTOP)
            for child in _children(store):
                child.suspend()

    def kill_frozen(self) -> None:
        for child in _children(self.postgresql):
            child.kill()
        # Only SIGQUIT has PostgreSQL give its shared memory back, and it ends without asking its processes.
        self.postgresql.send(signal.SIGQUIT)
        self.postgresql.send(signal.SIGCONT)
        for store in self._all:
            store.stop(signal.SIGQUIT if store is self.postgresql else signal.SIGKILL)

    @property
    def _all(self) -> tuple[Service, ...]:
        return self.postgresql, self.redis, self.engine


def _children(store: Service) -> list[psutil.Process]:
    return psutil.Process(store.pid).children(recursive=True)


def shared_secrets() -> dict[str, str]:
    """Returns the secrets that the product makes itself with SQLite, and must be given with a database server."""
    return {
        "SECRET_KEY": secrets.token_urlsafe(48),
        "ENCRYPTION_KEYS": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
    }


def migrate(folder: Path, environment: dict[str, str], command: str = "migrate_all") -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", command, "--verbosity", "0"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "VAR_DIR": str(folder / "migrating"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
