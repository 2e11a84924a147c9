"""Runs a command that the kernel kills when its parent dies: `python -I leash.py PARENT_PID COMMAND ...`.

Started as a file, without the project's imports, so that the detour costs a few milliseconds. A process of its
own rather than a `preexec_fn`, which is not safe in a parent that has threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # The parent died before the kernel was asked to watch it.
        sys.exit(1)
    # Python ignores SIGPIPE and children inherit that, so the command gets the usual handling back.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execvp(command[0], command)  # noqa: S606 - the supervisor's own list of commands


if __name__ == "__main__":
    main(sys.argv[1:])
