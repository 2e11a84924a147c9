"""A socket that whoever starts `serve` keeps open, as systemd does: connections wait while the host is replaced."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.live.read_only_root import as_asked
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.live.test_rolling_restart import Load
from tests.migrated import place_database, place_tables

# As systemd starts a service: the socket is descriptor 3, and LISTEN_PID the process that becomes the service.
_START = 'exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'


class _Host(LiveService):
    listening: socket.socket

    def _launch(self, environment: Mapping[str, str], arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        command = as_asked(self.var_dir, [sys.executable, "manage.py", "serve", *arguments])
        with self.output_file.open("ab") as output, self.log_file.open("ab") as log:
            return subprocess.Popen(
                ["/bin/sh", "-c", _START, "sh", *command],
                cwd=ROOT,
                env={**minimal_environment(self.var_dir), **environment},
                stdin=self.listening.fileno(),
                stdout=output,
                stderr=log,
            )


def test_serve__replaced_under_load_on_a_socket_it_was_given__no_connection_is_refused(tmp_path: Path) -> None:
    place_database(tmp_path / "var")
    place_tables(tmp_path / "var" / "clickhouse")
    # In the time before the drain each client hears that its connection ends.
    environment = {"WEB_WORKERS": "2", "PRESTOP_SECONDS": "4"}
    _Host.listening = socket.create_server(("127.0.0.1", 0))
    port = _Host.listening.getsockname()[1]
    service = _Host(tmp_path / "var", environment, ("--without", "celery"))
    load = Load(port, service.api_key)
    try:
        load.wait_for_more()
        assert service.base_url == f"http://127.0.0.1:{port}"
        assert service.stop() == 0
        service = _Host(tmp_path / "var", environment, ("--without", "celery"))
        load.wait_for_more()
    finally:
        load.stop()
        assert service.stop() == 0
        _Host.listening.close()

    assert load.errors == []
