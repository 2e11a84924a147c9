"""The CPU that a process and all its descendants have used."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
# The fields of /proc/PID/stat behind the command: the parent, and ticks of the process and of children it waited for.
_PARENT, _TIMES = 1, slice(11, 15)


def used(pid: int) -> float:
    """Returns seconds of CPU, user and system, of the process, its living descendants, and those that ended and were
    waited for. Misses orphans that another process inherited."""
    seconds: dict[int, float] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path("/proc", name, "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:  # It has ended meanwhile.
                continue
            seconds[int(name)] = sum(map(int, fields[_TIMES])) / _TICKS
            children[int(fields[_PARENT])].append(int(name))
    total, left = 0.0, [pid]
    while left:
        one = left.pop()
        total += seconds.get(one, 0.0)
        left += children[one]
    return total
