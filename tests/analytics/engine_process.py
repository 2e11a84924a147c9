"""The embedded engine as a process of the test's own, driven with the unmodified driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from clickhouse_driver import Client

from tests.services import START_SECONDS
from tests.waiting import TIMEOUT_SECONDS, wait_until

ROOT = Path(__file__).resolve().parent.parent.parent


class EngineProcess:
    """A process of `manage.py analytics_engine` on `directory`. Its addresses and its log are beside the directory."""

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        program: Sequence[str] = (str(ROOT / "manage.py"), "analytics_engine"),
        **environment: str,
    ) -> None:
        self.directory = directory
        self.port_file = directory.with_suffix(".port")
        self.url_file = directory.with_suffix(".url")
        self.log_file = directory.with_suffix(".log")
        # A killed engine has left the files of its addresses.
        self.port_file.unlink(missing_ok=True)
        self.url_file.unlink(missing_ok=True)
        command = [sys.executable, *program, "--data", str(directory)]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(port), "--port-file", str(self.port_file), "--url-file", str(self.url_file)],
                env={**os.environ, **environment},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_until_serving(self) -> EngineProcess:
        def serving() -> bool:
            assert self.process.poll() is None, self.log()
            return self.port_file.exists() and self.url_file.exists()

        wait_until(serving, seconds=START_SECONDS)
        return self

    @property
    def port(self) -> int:
        return int(self.port_file.read_text())

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    @contextmanager
    def client(self, **options: Any) -> Iterator[Client]:
        client = self.new_client(**options)
        try:
            yield client
        finally:
            client.disconnect()

    @property
    def url(self) -> str:
        return self.url_file.read_text(encoding="utf-8").strip()

    def new_client(self, **options: Any) -> Client:
        """Returns a client. `user`, `password` and `database` are those of the announced address unless given."""
        settings = {"server_side_params": True, **options.pop("settings", {})}
        address = urlsplit(self.url)
        own = {"user": address.username, "password": unquote(address.password or ""), "database": address.path[1:]}
        # The client waits for long: after a timeout it would connect anew, without the settings of its session.
        return Client(
            "127.0.0.1", port=self.port, settings=settings, sync_request_timeout=TIMEOUT_SECONDS, **own | options
        )

    def stop(self, by: signal.Signals = signal.SIGTERM, *, seconds: float = START_SECONDS) -> int:
        """Sends the signal and returns the exit code, negative for the signal that ended the process."""
        if self.process.poll() is None:
            self.process.send_signal(by)
        try:
            return self.process.wait(seconds)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()


@contextmanager
def running_engine(directory: Path, *, port: int = 0, **options: Any) -> Iterator[EngineProcess]:
    engine = EngineProcess(directory, port=port, **options)
    try:
        yield engine.wait_until_serving()
    finally:
        engine.stop()
