"""Counters inside a web worker, in a file that worker and benchmark map: reading them makes the worker do nothing."""

from __future__ import annotations

import gc
import mmap
import os
import signal
import sys
import tracemalloc
from enum import IntEnum
from pathlib import Path
from types import FrameType

from benchmarks.waiting import wait_until

_MAX_WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.001
_SIGNAL = signal.SIGUSR2


class Mode(IntEnum):
    OFF = 0
    CALLS = 1
    MEMORY = 2


class _Slot(IntEnum):
    WANTED = 0
    SIGNALS = 1  # The number of signals that the worker has obeyed.
    CALLS = 2
    CURRENT = 3  # Bytes of traced memory after a garbage collection.
    PEAK = 4  # The most bytes of traced memory since MEMORY was set before.
    COLLECTED = 5  # The objects that the garbage collector has freed so far.


def _map(file: Path) -> memoryview:
    with file.open("r+b") as opened:
        opened.truncate(8 * len(_Slot))
        return memoryview(mmap.mmap(opened.fileno(), 8 * len(_Slot))).cast("Q")


class Probe:
    def __init__(self, file: Path, pid: int) -> None:
        self._slots = _map(file)
        self._pid = pid

    def set(self, mode: Mode) -> None:
        obeyed = self._slots[_Slot.SIGNALS] + 1
        self._slots[_Slot.WANTED] = mode
        os.kill(self._pid, _SIGNAL)
        failure = f"the web worker does not count {mode.name.lower()}"
        wait_until(
            lambda: self._slots[_Slot.SIGNALS] == obeyed, failure, seconds=_MAX_WAIT_SECONDS, pause=_POLL_SECONDS
        )

    @property
    def calls(self) -> int:
        return self._slots[_Slot.CALLS]

    @property
    def memory(self) -> tuple[int, int]:
        return self._slots[_Slot.CURRENT], self._slots[_Slot.PEAK]

    @property
    def collected(self) -> int:
        return self._slots[_Slot.COLLECTED]


def install(file: Path) -> None:
    """Counts in this process's main thread, the event loop's, whenever the benchmark asks."""
    slots = _map(file)

    def count_calls(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            slots[_Slot.CALLS] += 1

    def obey(number: int, frame: FrameType | None) -> None:
        mode = Mode(slots[_Slot.WANTED])
        sys.setprofile(count_calls if mode is Mode.CALLS else None)
        if mode is Mode.MEMORY:
            _read_memory(slots)
        slots[_Slot.SIGNALS] += 1

    signal.signal(_SIGNAL, obey)


def _read_memory(slots: memoryview) -> None:
    if not tracemalloc.is_tracing():
        tracemalloc.start()
    slots[_Slot.PEAK] = tracemalloc.get_traced_memory()[1]
    # What only the garbage collector frees is no growth.
    gc.collect()
    slots[_Slot.COLLECTED] = sum(generation["collected"] for generation in gc.get_stats())
    slots[_Slot.CURRENT] = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
