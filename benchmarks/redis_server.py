from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.supervisor.redis import find_executable

_START_SECONDS = 30.0
_STOP_SECONDS = 15.0
_POLL_SECONDS = 0.05


@contextmanager
def redis_server() -> Iterator[str]:
    """Yields the REDIS_URL of the benchmark's own server. Raises TimeoutError if it does not start."""
    # The path of a socket is limited to some hundred characters, so the folder is not that of the data.
    folder = Path(tempfile.mkdtemp(prefix="bench-redis-"))
    address = folder / "redis.sock"
    command = [find_executable(), "--port", "0", "--unixsocket", str(address), "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        _wait_until_it_listens(address)
        yield f"unix://{address}"
    finally:
        server.terminate()
        server.wait(_STOP_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_it_listens(address: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as client:
            if client.connect_ex(str(address)) == 0:
                return
        time.sleep(_POLL_SECONDS)
    raise TimeoutError(f"Redis does not listen after {_START_SECONDS:.0f} s")
