"""What the tests of the fork server run: `python -m tests.config.forked STORY` is a `serve` whose supervisor plays it.

The other functions are programs of its children.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from config.supervisor import fork_server
from config.supervisor.processes import Process, Processes, Program

# One item for each signal that the fork server got.
Stops: TypeAlias = "asyncio.Queue[None]"

_MODULE = "colorsys"  # The tests have it imported once; nothing else imports it.


def report(*arguments: str) -> None:
    """Prints what a child is like."""
    from gateway.protocol.identifiers import new_request_id

    _print(f"arguments={','.join(arguments)} id={new_request_id()[-12:]} threads={threading.active_count()}\n")
    sys.stderr.write(f"leads_session={os.getsid(0) == os.getpid()} imported_before={_MODULE in sys.modules}\n")


def write(descriptor: int, text: str) -> None:
    os.write(descriptor, text.encode())


def wait(*_: str) -> None:
    _print("waiting\n")
    signal.pause()


def fail(*_: str) -> None:
    raise OSError("this program's own failure")


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _function(name: str) -> str:
    return f"tests.config.forked:{name}"


async def _output(process: Process) -> str:
    return f"{(await process.output.read()).decode()}exit_code={await process.wait()}\n"


async def _two(processes: Processes, stops: Stops) -> int:
    await processes.import_modules([_MODULE, "gateway.protocol.identifiers"])
    both = [await processes.start("first", Program(["1", "2"], _function("report"))) for _ in range(2)]
    for process in both:
        _print(await _output(process))
    return 0


async def _kinds(processes: Processes, stops: Stops) -> int:
    read, written = os.pipe()
    programs = [
        Program(["/bin/sh", "-c", "echo $0 $1; exit 3", "executed", "well"]),
        Program(["kept"], _function("write"), [written]),
        Program([], _function("fail")),
        Program([], "tests.config.forked:absent"),
        Program(["/absent/executable"]),
    ]
    for program in programs:
        _print(await _output(await processes.start("role", program)))
    _print(f"{os.read(read, 99).decode()}\n")
    return 0


async def _killed(processes: Processes, stops: Stops) -> int:
    for _ in range(2):
        process = await processes.start("role", Program([], _function("wait")))
        assert await process.output.readline() == b"waiting\n"
        os.kill(process.pid, signal.SIGKILL)
        _print(f"{await process.wait()}\n")
    return 0


async def _broken_import(processes: Processes, _: Stops) -> int:
    await processes.import_modules(["tests.config.no_such_module", _MODULE])
    _print(await _output(await processes.start("role", Program([], _function("report")))))
    return 0


async def _leaves_a_child(processes: Processes, _: Stops) -> int:
    process = await processes.start("role", Program([], _function("wait")))
    _print(f"{process.pid}\n")
    return 7


async def _signalled(processes: Processes, stops: Stops) -> int:
    process = await processes.start("role", Program([], _function("wait")))
    _print(f"{process.pid} {os.getpid()}\n")
    await stops.get()
    _print(f"forwarded running={process.is_running}\n")
    process.terminate()
    _print(f"{await process.wait()} more={stops.qsize()}\n")
    return 0


async def _ended_at_once(processes: Processes, stops: Stops) -> int:
    codes = set[int]()
    for _ in range(30):
        process = await processes.start("role", Program([], _function("wait")))
        process.terminate()
        codes.add(await process.wait())
    _print(f"{codes} stops={stops.qsize()}\n")
    return 0


async def _dies(processes: Processes, _: Stops) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.Event().wait()
    return 0


_STORIES: dict[str, Callable[[Processes, Stops], Awaitable[int]]] = {
    "two": _two,
    "kinds": _kinds,
    "killed": _killed,
    "broken_import": _broken_import,
    "leaves_a_child": _leaves_a_child,
    "signalled": _signalled,
    "ended_at_once": _ended_at_once,
    "dies": _dies,
}


async def _play(story: str, requests: socket.socket) -> int:
    stops: Stops = asyncio.Queue()
    processes = Processes(requests, lambda: stops.put_nowait(None), lambda: None)
    try:
        return await _STORIES[story](processes, stops)
    finally:
        processes.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(_play(sys.argv[1], fork_server.split())))
