from __future__ import annotations

import subprocess
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import psutil

from benchmarks import payloads, processes

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "benchmarks" / ".peers"


class UnavailableError(Exception):
    """The target cannot run here; the message goes into the table."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    port: int
    path: str = "/v1/chat/completions"
    model: str = payloads.MODEL
    headers: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)


class Target(ABC):
    """The order of calls is `install`, `start`, then measurements of `serving`, and `stop`."""

    name: ClassVar[str]
    label: ClassVar[str]

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace / self.name
        self.log = self.workspace / "output.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def installed(self) -> bool:
        return True

    def install(self) -> None:  # noqa: B027 - what needs no installing has nothing to do here
        """Raises UnavailableError."""

    @abstractmethod
    def version(self) -> str: ...

    @abstractmethod
    def start(self, mock_port: int) -> Endpoint: ...

    def stop(self) -> None:
        if self.process is not None:
            processes.stop(self.process)
            self.process = None

    def serving(self) -> list[psutil.Process]:
        return processes.tree(self.process.pid) if self.process is not None else []

    def beside(self) -> dict[str, list[psutil.Process]]:
        """By role; they run on the core of load and mock."""
        return {}

    def has_work_left(self) -> bool:
        return False

    def _launch(self, command: list[str], ready: str, environment: dict[str, str] | None = None) -> None:
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.process = processes.start(command, log=self.log, environment=environment, folder=self.workspace)
        processes.wait_ready(self.process, ready, log=self.log)


class PythonPeer(Target):
    requirement: ClassVar[str]
    distribution: ClassVar[str]

    @property
    def folder(self) -> Path:
        return PEERS / self.distribution

    @property
    def installed(self) -> bool:
        return is_installed(self.folder, self.requirement)

    def install(self) -> None:
        install(self.folder, self.requirement)

    def version(self) -> str:
        code = f"import importlib.metadata as m; print(m.version({self.distribution!r}))"
        return run_step([str(self.folder / "bin" / "python"), "-c", code])


def is_installed(environment: Path, requirement: str) -> bool:
    stamp = environment / ".installed"
    return stamp.exists() and stamp.read_text() == requirement


def install(environment: Path, requirement: str) -> None:
    if is_installed(environment, requirement):
        return
    run_step([sys.executable, "-m", "venv", "--clear", str(environment)])
    run_step([str(environment / "bin" / "pip"), "install", "--quiet", "--only-binary", ":all:", requirement])
    (environment / ".installed").write_text(requirement)


def run_step(command: list[str], *, seconds: float = 900.0) -> str:
    """Raises UnavailableError with the end of the command's error output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{Path(command[0]).name}: {type(error).__name__}") from error
    if done.returncode:
        raise UnavailableError(f"{Path(command[0]).name} failed: {done.stderr.strip()[-200:]}")
    return (done.stdout or done.stderr).strip()
