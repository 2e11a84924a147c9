"""`python -m tests.config.forked STORY` is a `serve` whose supervisor plays the story.

The other functions are programs of its children.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from config.supervisor import fork_server, run_files
from config.supervisor.children import Child, Service, StartError, all_started
from config.supervisor.processes import Process, Processes, Program
from config.supervisor.replacement import Replacement
from config.supervisor.web import WebWorker
from tests.waiting import eventually

# One item for each signal that the fork server got.
Stops: TypeAlias = "asyncio.Queue[None]"

_MODULE = "colorsys"  # The fork server imports it on request; nothing else imports it.


def report(*arguments: str) -> None:
    from gateway.protocol.identifiers import new_request_id

    _print(f"arguments={','.join(arguments)} id={new_request_id()[-12:]} threads={threading.active_count()}\n")
    sys.stderr.write(f"leads_session={os.getsid(0) == os.getpid()} imported_before={_MODULE in sys.modules}\n")


def write(descriptor: int, text: str) -> None:
    os.write(descriptor, text.encode())


def wait(*_: str) -> None:
    _print("waiting\n")
    signal.pause()


def serve(descriptor: int, file: str, value: str) -> None:
    if value == "bad":
        fail()
    # A worker that is told of its successor goes on until it is stopped.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    Path(file).with_suffix(f".{os.getpid()}").write_text(value, encoding="utf-8")
    os.write(descriptor, b".")
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
    await processes.import_modules(["tests.config.no_such_module", _MODULE])
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


async def _own_streams(processes: Processes, _: Stops) -> int:
    _print(f"exit_code={await (await processes.run('role', Program(['1'], _function('report'))))}\n")
    _print(f"exit_code={await (await processes.run('role', Program(['/bin/sh', '-c', 'exit 3'])))}\n")
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
    codes, yielded = set[int](), set[bool]()
    own = os.getpriority(os.PRIO_PROCESS, 0)
    for _ in range(30):
        process = await processes.start("role", Program([], _function("wait")))
        process.yield_to_others(1)
        yielded.add(os.getpriority(os.PRIO_PROCESS, process.pid) == min(own + 1, 19))
        process.terminate()
        codes.add(await process.wait())
    _print(f"{codes} yielded={yielded} stops={stops.qsize()}\n")
    return 0


class _Worker(WebWorker):
    """Has the value of `values` at the moment in which it is started."""

    def __init__(self, number: int, listening: socket.socket, values: dict[str, str], folder: Path) -> None:
        super().__init__(number, listening, listening.fileno(), drain_seconds=0)
        self._values = values
        self._file = folder / self.role

    def program(self) -> Program:
        *_, serving = super().program().descriptors
        return Program([str(self._file), self._values[self.role]], _function("serve"), [serving])

    def value(self, folder: Path) -> str | None:
        pid = run_files.read(folder / f"{self.role}.pid")
        return run_files.read(self._file.with_suffix(f".{pid}"))


async def _one_does_not_start(processes: Processes, _: Stops) -> int:
    """Three workers get new values. The third dies meanwhile and is restarted with its own; the second refuses it."""
    with tempfile.TemporaryDirectory() as name, socket.socket() as listening:
        folder, web, force = Path(name), list[Child](), asyncio.Event()
        values = {f"web-{number}": "former" for number in (1, 2, 3)}
        workers = [_Worker(number, listening, values, folder) for number in (1, 2, 3)]

        def launch(service: Service) -> Child:
            web.append(Child(service, processes, run_dir=folder))
            web[-1].launch()
            return web[-1]

        await all_started([launch(worker) for worker in workers])
        replacement = Replacement(web, lambda: (), launch, force)
        before = replacement.restarts()
        values.update({"web-1": "new", "web-2": "bad", "web-3": "new"})
        third = web[2]
        third.restart()
        await eventually(lambda: third.restarts == 1 and third.is_up and workers[2].value(folder) == "new")
        try:
            await replacement.replace()
        except StartError as error:
            _print(f"{error}: {' '.join(str(worker.value(folder)) for worker in workers)}\n")
        values.update({worker.role: "former" for worker in workers})
        await replacement.replace_back(before)
        _print(f"{len(web)}: {' '.join(str(worker.value(folder)) for worker in workers)}\n")
        await asyncio.gather(*(child.stop(force=force) for child in web))
    return 0


async def _dies(processes: Processes, _: Stops) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.Event().wait()
    return 0


_STORIES: dict[str, Callable[[Processes, Stops], Awaitable[int]]] = {
    "two": _two,
    "kinds": _kinds,
    "killed": _killed,
    "own_streams": _own_streams,
    "leaves_a_child": _leaves_a_child,
    "signalled": _signalled,
    "ended_at_once": _ended_at_once,
    "one_does_not_start": _one_does_not_start,
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
    fork_server.import_modules(["gateway.protocol.identifiers"])
    sys.exit(asyncio.run(_play(sys.argv[1], fork_server.split())))
