"""Pages of large libraries that only the engine's start needed go back to the system (Linux)."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path

import pytest

from analytics.clickhouse.engine.code_pages import LARGE_BYTES, release_code_pages
from tests.analytics.engine_process import running_engine

# The engine's start alone leaves more of its library resident.
_MAX_KILOBYTES = 100_000
_WRITTEN = b"relocated by the loader"


def _resident_kilobytes(address: int) -> int:
    """Returns what is resident of the mapping that begins at the address."""
    smaps = Path("/proc/self/smaps").read_text()
    mapping = smaps[smaps.index(f"\n{address:x}-") :]
    return int(mapping[mapping.index("\nRss:") :].split()[1])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "library.so"
    with path.open("wb") as library:
        library.write(b"code")
        library.truncate(LARGE_BYTES)
    return path


def test_release__pages_that_are_only_read__go_and_come_back(file: Path) -> None:
    with file.open("rb") as library, mmap.mmap(library.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ) as code:
        address = _address_of(file)
        assert all(code[at] == 0 for at in range(mmap.PAGESIZE, LARGE_BYTES, mmap.PAGESIZE))
        # The kernel may take some pages back by itself.
        assert _resident_kilobytes(address) * 1024 > LARGE_BYTES // 2

        release_code_pages()

        assert _resident_kilobytes(address) == 0
        assert code[:4] == b"code"


def test_release__pages_that_were_written__stay(file: Path) -> None:
    rights = mmap.PROT_READ | mmap.PROT_WRITE
    with file.open("rb") as library, mmap.mmap(library.fileno(), 0, mmap.MAP_PRIVATE, rights) as code:
        code[: len(_WRITTEN)] = _WRITTEN
        # As the loader does with the constants that hold addresses.
        protect = ctypes.CDLL(None).mprotect
        size = ctypes.c_size_t(LARGE_BYTES)
        assert protect(ctypes.c_void_p(_address_of(file)), size, mmap.PROT_READ) == 0

        release_code_pages()

        assert code[: len(_WRITTEN)] == _WRITTEN


def test_engine__started__holds_less_code_than_its_start_read(tmp_path: Path) -> None:
    with running_engine(tmp_path / "data") as engine:
        status = Path(f"/proc/{engine.process.pid}/status").read_text()
        with engine.client() as client:
            assert client.execute("SELECT 1") == [(1,)]

    assert int(status[status.index("RssFile:") :].split()[1]) < _MAX_KILOBYTES


def _address_of(file: Path) -> int:
    [line] = [line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(f" {file}")]
    return int(line.partition("-")[0], 16)
