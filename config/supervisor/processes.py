from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

_READ_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Program:
    """`module:function`, called with the inherited descriptors and the arguments; without a function, the first
    argument is an executable."""

    arguments: Sequence[str]
    function: str | None = None
    descriptors: Sequence[int] = ()


def command(*arguments: str) -> Program:
    return Program(arguments, "config.supervisor.command:main")


class Process:
    def __init__(self, pid: int, output: asyncio.StreamReader, ended: asyncio.Future[int]) -> None:
        self.pid = pid
        self.output = output
        self._ended = ended

    @property
    def is_running(self) -> bool:
        return not self._ended.done()

    async def wait(self) -> int:
        """Returns the exit code, negative for a process that a signal ended."""
        return await asyncio.shield(self._ended)

    def terminate(self) -> None:
        self.send(signal.SIGTERM)

    def send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def yield_to_others(self, niceness: int) -> None:
        with suppress(ProcessLookupError):
            # The group are all threads of the process: each has a niceness of its own.
            os.setpriority(os.PRIO_PGRP, self.pid, os.getpriority(os.PRIO_PROCESS, 0) + niceness)
        # Where the kernel groups processes by session, a process's niceness counts only within its own group, and the
        # group has one of its own. A container may forbid the writing, and then has no such groups.
        with suppress(OSError), open(f"/proc/{self.pid}/autogroup", "w") as file:
            file.write(str(niceness))


class Processes:
    """Sends the fork server one request at a time.

    `on_stop_signal` is called for each SIGTERM and SIGINT that the fork server gets, `on_hangup` for each SIGHUP.
    """

    def __init__(
        self, requests: socket.socket, on_stop_signal: Callable[[], None], on_hangup: Callable[[], None]
    ) -> None:
        self._socket = requests
        self._on_hangup = on_hangup
        self._on_stop_signal = on_stop_signal
        self._socket.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._turn = asyncio.Lock()
        self._answer: asyncio.Future[dict[str, Any]] | None = None
        self._running: dict[int, asyncio.Future[int]] = {}
        self._unread = b""
        self._loop.add_reader(requests, self._read)

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()

    async def give_secrets(self, values: Mapping[str, str]) -> None:
        await self._in_turn(self._request({"secrets": dict(values)}, ()))

    async def import_modules(self, modules: Sequence[str]) -> None:
        """Returns once all later forks share the modules."""
        await self._in_turn(self._request({"modules": list(modules)}, ()))

    async def start(self, role: str, program: Program) -> Process:
        """Starts a process in a session of its own. Raises OSError if the system has no room for one."""
        return await self._in_turn(self._start(role, program))

    async def run(self, role: str, program: Program) -> asyncio.Future[int]:
        """Starts a process that shares the supervisor's output, and returns its exit code to come."""
        request = _start_request(role, program, has_output=False)
        ended: asyncio.Future[int] = (await self._in_turn(self._forked(request, program.descriptors)))["ended"]
        return asyncio.shield(ended)

    async def _in_turn(self, work: Coroutine[Any, Any, T]) -> T:
        async def one_by_one() -> T:
            async with self._turn:
                return await work

        # An answer comes to each request, also to one whose sender was cancelled.
        return await asyncio.shield(asyncio.ensure_future(one_by_one()))

    async def _start(self, role: str, program: Program) -> Process:
        read, write = os.pipe()
        output = asyncio.StreamReader()
        await self._loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(output), os.fdopen(read, "rb", 0))
        try:
            request = _start_request(role, program, has_output=True)
            answer = await self._forked(request, (write, *program.descriptors))
        finally:
            os.close(write)
        return Process(answer["pid"], output, answer["ended"])

    async def _forked(self, request: dict[str, Any], descriptors: Sequence[int]) -> dict[str, Any]:
        answer = await self._request(request, descriptors)
        if "error" in answer:
            raise OSError(*answer["error"])
        return answer

    async def _request(self, request: dict[str, Any], descriptors: Sequence[int]) -> dict[str, Any]:
        self._answer = self._loop.create_future()
        # A socket that holds no other request has room for this one.
        socket.send_fds(self._socket, [json.dumps(request).encode() + b"\n"], descriptors)
        return await self._answer

    def _read(self) -> None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            # The fork server is gone. Linux ends this process with it; other systems leave it to stop in order.
            self._loop.remove_reader(self._socket)
            self._on_stop_signal()
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        if "signal" in message:
            (self._on_hangup if message["signal"] == signal.SIGHUP else self._on_stop_signal)()
        elif "exit_code" in message:
            self._running.pop(message["pid"]).set_result(message["exit_code"])
        elif self._answer is not None:
            if "pid" in message:
                # The end of a process may be read right behind its start.
                message["ended"] = self._running[message["pid"]] = self._loop.create_future()
            self._answer.set_result(message)


def _start_request(role: str, program: Program, *, has_output: bool) -> dict[str, Any]:
    return {
        "role": role,
        "function": program.function,
        "arguments": list(program.arguments),
        "has_output": has_output,
    }
