"""Child processes that listen on a loopback port of their own choice and write it to a file."""

from __future__ import annotations

from pathlib import Path

from config.supervisor import polling, run_files
from config.supervisor.children import Service
from config.supervisor.processes import Program, command


class PortService(Service):
    """A `manage.py` command with `--port` and `--port-file`. `url` is the address to announce, with `{port}` in it."""

    def __init__(self, *, role: str, arguments: list[str], announced_as: str, url: str, run_dir: Path) -> None:
        self.role = role
        self._arguments = arguments
        self._url = url
        self._url_file = run_dir / f"{announced_as}.url"
        self._port_file = run_dir / f"{role}.port"
        self._port = 0

    def program(self) -> Program:
        # A restarted child asks for its former port, so that clients that know the address still find it. A start that
        # fails before readiness forgets the port, so that a port that was taken meanwhile blocks no restart.
        port, self._port = self._port, 0
        self._port_file.unlink(missing_ok=True)
        return command(*self._arguments, "--port", str(port), "--port-file", str(self._port_file))

    async def ready(self) -> None:
        self._port = await polling.port_written(self._port_file)
        run_files.write(self._url_file, self._url.format(port=self._port))
