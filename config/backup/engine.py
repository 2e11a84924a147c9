from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from analytics.clickhouse import client
from analytics.errors import AnalyticsUnavailableError
from config.backup.errors import BackupError

_LOOK_EVERY_SECONDS = 0.05
_STOP_SECONDS = 60.0
_MANAGE = Path(settings.BASE_DIR) / "manage.py"


@contextmanager
def request_log_running() -> Iterator[None]:
    if _answers():
        yield
        return
    if settings.CLICKHOUSE_URL:
        raise BackupError("The ClickHouse server at CLICKHOUSE_URL does not answer: start it, or use --without-log.")
    with _own_engine():
        yield


def _answers() -> bool:
    try:
        client.execute("SELECT 1")
    except AnalyticsUnavailableError:
        return False
    return True


@contextmanager
def _own_engine() -> Iterator[None]:
    url_file = Path(settings.RUN_DIR) / "clickhouse.url"
    url_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A file of an engine that has died would be read at once.
    url_file.unlink(missing_ok=True)
    words = ["analytics_engine", "--data", str(settings.VAR_DIR / "clickhouse"), "--url-file", str(url_file)]
    command = [sys.executable, str(_MANAGE), *words]
    engine = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - our own words
    try:
        while not url_file.exists():
            if engine.poll() is not None:
                raise BackupError("The embedded ClickHouse engine did not start: see its message above.")
            time.sleep(_LOOK_EVERY_SECONDS)
        yield
    finally:
        client.close()
        engine.terminate()
        try:
            engine.wait(_STOP_SECONDS)
        finally:
            engine.kill()
            url_file.unlink(missing_ok=True)
