"""The product's sandbox provider as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.waiting import TIMEOUT_SECONDS, wait_until

ROOT = Path(__file__).resolve().parent.parent.parent


class SandboxProcess:
    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="gws-", dir="/tmp")
        port_file = Path(self._folder.name) / "port"
        self._child = subprocess.Popen(
            [sys.executable, "manage.py", "sandbox", "--port", "0", "--port-file", str(port_file)],
            cwd=ROOT,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings.base", "VAR_DIR": self._folder.name},
        )
        port = wait_until(lambda: port_file.read_text().strip() if port_file.exists() else None, what="the sandbox")
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._child.terminate()
        self._child.wait(TIMEOUT_SECONDS)
        self._folder.cleanup()
