from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import psutil

_POLL_SECONDS = 0.1
_KILLED_SECONDS = 20.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(
    command: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.Popen[bytes]:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            cwd=folder,
            start_new_session=True,
        )


def stop(process: subprocess.Popen[bytes], *, seconds: float = 60.0) -> None:
    """Terminates the process, then kills all it started, even in other groups, and waits for them: a running one would
    write into a folder that is about to be removed."""
    below = _with_groups(tree(process.pid))
    process.terminate()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    finally:
        below |= _with_groups(tree(process.pid))
        for one in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        _wait_gone(below)
        process.wait()


def _wait_gone(killed: Iterable[psutil.Process]) -> None:
    deadline = time.monotonic() + _KILLED_SECONDS
    while any(not is_gone(one) for one in killed) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _with_groups(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    """Adds all processes that share a group with one of these: their own parent may have ended."""
    found = set(processes)
    groups = set()
    for one in found:
        with contextlib.suppress(ProcessLookupError):
            groups.add(os.getpgid(one.pid))
    groups.discard(os.getpgid(0))
    for other in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(other.pid) in groups:
                found.add(other)
    return found


def wait_ready(process: subprocess.Popen[bytes], url: str, *, log: Path, seconds: float = 120.0) -> None:
    """Returns when `url` answers below 500. Raises RuntimeError with the end of the log if it never does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"exited with {process.returncode}: {_end_of(log)}")
        if _answers(url):
            return
        time.sleep(_POLL_SECONDS)
    raise RuntimeError(f"not ready after {seconds:.0f} s: {_end_of(log)}")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - the callers pass loopback http addresses
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except (OSError, ValueError):
        return False


def _end_of(log: Path) -> str:
    return " / ".join(log.read_text(errors="replace").strip().splitlines()[-3:])[-400:]


def tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def pin(processes: Iterable[psutil.Process], cores: Iterable[int]) -> None:
    core_numbers = list(cores)
    for process in processes:
        for thread in _thread_ids(process):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread, core_numbers)


def _thread_ids(process: psutil.Process) -> list[int]:
    try:
        return [thread.id for thread in process.threads()]
    except psutil.NoSuchProcess:
        return []


def cpu_seconds(processes: Iterable[psutil.Process]) -> float:
    """Returns user and system time so far; ended processes count nothing.

    Reads the process's clock, because `/proc` counts in hundredths of a second: at little load, several percent of a
    short window.
    """
    total = 0.0
    for process in processes:
        with contextlib.suppress(OSError):
            total += time.clock_gettime(_cpu_clock(process.pid))
    return total


def _cpu_clock(pid: int) -> int:
    """Computes the clock's number as Linux's `clock_getcpuclockid` does."""
    return (~pid << 3) | 2


def resident_megabytes(processes: Iterable[psutil.Process]) -> float:
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total / 1e6
