"""Python imports this module as it starts, where this folder is on its path: see `tests.clock`.

The time of day is off by the seconds in CLOCK_OFFSET_FILE, and jumps when another number is put there. Monotonic time
goes on, as it does when a host's clock is set.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import time_machine

_LOOK_EVERY_SECONDS = 0.05
# The real clocks are kept before they are replaced.
_real_time = time.time


class _OffClock:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0.0
        self._journey: time_machine.travel | None = None

    def follow(self) -> None:
        """Reads the offset once before any other code of the process runs, and then in a thread."""
        self._look()
        threading.Thread(target=self._watch, name="clock", daemon=True).start()

    def _watch(self) -> None:
        never = threading.Event()
        while not never.wait(_LOOK_EVERY_SECONDS):
            self._look()

    def _look(self) -> None:
        offset = float(self._file.read_text(encoding="ascii"))
        if offset == self._offset:
            return
        if self._journey:
            self._journey.stop()
        self._offset = offset
        self._journey = time_machine.travel(_real_time() + offset, tick=True)
        self._journey.start()


_clock = _OffClock(Path(os.environ["CLOCK_OFFSET_FILE"]))
_clock.follow()
# A forked child has none of its parent's threads.
os.register_at_fork(after_in_child=_clock.follow)
