"""A second copy of what waits in the spool, on object storage: a host that is lost takes nothing older along.

The shipper stores most records within two seconds, so that only those are copied that wait for longer, as all do while
ClickHouse is away. A piece of a segment is an object `<segment>/<start>-<end>` (bytes), removed when the store has it.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from analytics.spool import names
from analytics.spool.shipper_state import State, StateFile
from core.processes.background_tasks import keep_thread_running
from core.storage import Place, StorageError

logger = logging.getLogger("analytics.second_copy")

_MAX_PIECE = 32 << 20


def name_of(segment: str, start: int, end: int) -> str:
    return f"{segment}/{start:020}-{end:020}"


def range_of(name: str) -> tuple[str, int, int]:
    """Returns segment, start and end of a piece. Raises ValueError for another name."""
    segment, _, numbers = name.rpartition("/")
    start, _, end = numbers.partition("-")
    return segment, int(start), int(end)


class SecondCopy:
    """Copies the spool in `directory` to `place`, from a thread of its own until it is closed. Bytes are copied when
    they have waited for `seconds`, at twice that at the latest."""

    def __init__(self, directory: Path, place: Place, *, seconds: float) -> None:
        self._directory, self._place, self._seconds = directory, place, seconds
        self._state = StateFile(directory)
        # The size of each segment when it was last looked at, and up to where it has been copied.
        self._sizes: dict[str, int] = {}
        self._copied: dict[str, int] = {}
        self._pieces: set[str] | None = None
        self._failed = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        self._thread = keep_thread_running("analytics.second_copy", self._run)

    def close(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def look(self) -> None:
        """Copies what has waited since the last look, and removes what has been shipped. Raises StorageError."""
        if self._pieces is None:
            self._pieces = set(self._place.sizes(""))
            for segment, _, end in map(range_of, self._pieces):
                self._copied[segment] = max(end, self._copied.get(segment, 0))
        state = self._state.load()
        sizes = {path.name: path.stat().st_size for path in names.list_files(self._directory, names.SEGMENT)}
        for segment, size in sizes.items():
            self._copy(segment, min(size, self._sizes.get(segment, 0)), state)
        self._sizes = sizes
        self._remove_shipped(state)

    def _copy(self, segment: str, end: int, state: State) -> None:
        start = max(self._copied.get(segment, 0), state.offsets.get(segment, 0))
        while start < end:
            upto = min(end, start + _MAX_PIECE)
            with (self._directory / segment).open("rb") as file:
                file.seek(start)
                content = file.read(upto - start)
            name = name_of(segment, start, upto)
            self._place.write(name, content)
            self._known().add(name)
            self._copied[segment] = start = upto

    def _remove_shipped(self, state: State) -> None:
        for name in sorted(self._known()):
            segment, _, end = range_of(name)
            if segment not in self._sizes or state.offsets.get(segment, 0) >= end:
                self._place.delete(name)
                self._known().discard(name)
        self._copied = {segment: end for segment, end in self._copied.items() if segment in self._sizes}

    def _known(self) -> set[str]:
        if self._pieces is None:
            self._pieces = set()
        return self._pieces

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                self.look()
            except (StorageError, FileNotFoundError) as error:
                # A segment that was shipped and removed meanwhile is no failure: the next look does not find it.
                if isinstance(error, StorageError) and not self._failed:
                    logger.warning("second_copy.failed reason=%s", error)
                    self._failed = True
            else:
                if self._failed:
                    logger.info("second_copy.recovered")
                self._failed = False
