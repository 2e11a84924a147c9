"""The fork server: the first process of `serve`, from which all others are forked.

It imports the application once. Its children share the memory of the imported modules and start within milliseconds; a
dead child is replaced by another fork of the same process. So that every fork is as good as a new process, the fork
server opens nothing and runs nothing: it has one thread, no event loop, no connection, and no file but the socket to
the supervisor. That is its first child, and requests what to run and what to import.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import logging
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

from config import json_log, secrets_reload

logger = logging.getLogger("config.supervisor")

_READ_BYTES = 65536
# The output and what a program inherits; a web worker gets three.
_MAX_DESCRIPTORS = 8
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
# SIGHUP has `serve` read its secrets again. In a terminal it says that the terminal is gone, and stops.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def split() -> socket.socket:
    """Forks the supervisor, and returns in it the socket for its requests.

    The calling process becomes the fork server. It reports SIGTERM and SIGINT to the supervisor by the socket, and ends
    with its exit code, by SystemExit. So does a program that is forked from it, once it has run: the caller must hold
    nothing that only one process may release.
    """
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    _keep_shared()
    supervisor = _fork()
    if supervisor == 0:
        ours.close()
        # What signals a whole service at once, as systemd does, must not count as two signals.
        for number in _SIGNALS:
            signal.signal(number, _ignore)
        _begin(parent, "supervisor")
        return theirs
    theirs.close()
    raise SystemExit(_ForkServer(ours, supervisor).serve())


class _ForkServer:
    def __init__(self, requests: socket.socket, supervisor: int) -> None:
        self._requests = requests
        self._supervisor = supervisor
        self._children = {supervisor}
        # The kernel's signals arrive in this pipe, one byte each, because `select` sleeps on after a Python handler.
        self._woken, wake = os.pipe()
        for descriptor in (self._woken, wake):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._descriptors = (self._woken, wake)
        for number in (signal.SIGCHLD, *_SIGNALS):
            signal.signal(number, _ignore)

    def serve(self) -> int:
        listened: list[Any] = [self._woken, self._requests]
        # A child that ended before there was a handler wakes nobody, so the first look comes before the first wait.
        while (code := self._reap()) is None:
            readable = select.select(listened, [], [])[0]
            if self._woken in readable:
                self._send_signals()
            if self._requests in readable and not self._handle_request():
                # The supervisor is ending, and its SIGCHLD follows.
                listened.remove(self._requests)
        self._kill_children()
        return code

    def _send_signals(self) -> None:
        with suppress(BlockingIOError):
            while numbers := os.read(self._woken, _READ_BYTES):
                for number in numbers:
                    if number in _SIGNALS:
                        self._send({"signal": number})

    def _reap(self) -> int | None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                return None
            code = os.waitstatus_to_exitcode(status)
            if pid == self._supervisor:
                # A shell's convention for what a signal ended.
                return code if code >= 0 else 128 - code
            # Orphans of other processes end here too, where `serve` is the first process of a container.
            if pid in self._children:
                self._children.remove(pid)
                self._send({"pid": pid, "exit_code": code})

    def _kill_children(self) -> None:
        self._children.discard(self._supervisor)
        for pid in self._children:
            with suppress(ProcessLookupError, PermissionError):  # macOS refuses signals to a group of zombies.
                os.killpg(pid, signal.SIGKILL)

    def _handle_request(self) -> bool:
        line, descriptors = _receive(self._requests)
        if not line:
            return False
        request = json.loads(line)
        if "secrets" in request:
            secrets_reload.apply(request["secrets"])
            self._send({})
        elif "modules" in request:
            import_modules(request["modules"])
            _keep_shared()
            self._send({})
        else:
            self._start(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _start(self, request: dict[str, Any], descriptors: list[int]) -> None:
        parent = os.getpid()
        # The child closes its end once it has a session. Before that, what the supervisor sets for its group is lost.
        beginning, begun = socket.socketpair()
        with beginning, begun:
            try:
                pid = _fork()
            except OSError as error:
                self._send({"error": [error.errno, error.strerror]})
                return
            if pid == 0:
                for descriptor in (self._requests.detach(), *self._descriptors):
                    os.close(descriptor)
                beginning.close()
                inherited = list(descriptors)
                _begin(parent, request["role"], inherited.pop(0) if request["has_output"] else None)
                begun.close()
                _run(request["function"], inherited, request["arguments"])
            self._children.add(pid)
            begun.close()
            beginning.recv(1)
        self._send({"pid": pid})

    def _send(self, message: dict[str, Any]) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # The supervisor has died, and is reaped next.
            self._requests.sendall(json.dumps(message).encode() + b"\n")


def _receive(requests: socket.socket) -> tuple[bytes, list[int]]:
    line, descriptors = b"", list[int]()
    while not line.endswith(b"\n"):
        data, more, _, _ = socket.recv_fds(requests, _READ_BYTES, _MAX_DESCRIPTORS)
        descriptors += more
        if not data:
            return b"", descriptors
        line += data
    return line, descriptors


def import_modules(modules: Sequence[str]) -> None:
    """Imports modules for all later forks. A failing import fails again in the process that needs it, which logs why.

    Garbage of the imports is kept: a collection would free blocks all over the pages, and each fork would copy the
    pages in which it fills the gaps. It would also take a tenth of the imports' time.
    """
    gc.disable()
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:
            logger.warning("module.not_imported module=%s error=%s", module, type(error).__name__)
    gc.enable()


def _keep_shared() -> None:
    """The collector writes into the head of each object that it looks at, and so would unshare the page."""
    gc.freeze()


def _fork() -> int:
    """Gives the child default signal handlers before any signal can reach it: with the fork server's, a stop of this
    child would stop the whole service."""
    _flush()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD, *_SIGNALS))
    try:
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return pid
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _begin(parent: int, role: str, output: int | None = None) -> None:
    # Ctrl-C in a terminal reaches the fork server alone; the supervisor stops its children in order.
    os.setsid()
    _end_with(parent)
    _name(role)
    json_log.role = role
    if output is None:
        return
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, descriptor in enumerate((nothing, output, output)):
        os.dup2(descriptor, stream)
    os.close(nothing)
    os.close(output)
    for text in (sys.stdout, sys.stderr):
        text.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # both are of io.TextIOWrapper


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # The parent died before the kernel was asked to watch it.
        os._exit(1)


def _name(role: str) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, role.encode()[:15])


def _run(function: str | None, descriptors: list[int], arguments: list[str]) -> NoReturn:
    if function is None:
        # Python ignores SIGPIPE and programs inherit that, so this one gets the usual handling back.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execvp(arguments[0], arguments)  # noqa: S606 - the supervisor's own list of commands
    module, _, name = function.partition(":")
    getattr(importlib.import_module(module), name)(*descriptors, *arguments)
    raise SystemExit


def _flush() -> None:
    """Flushes the standard streams: a fork would write its copy of the buffers again."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # Nobody reads it any more; that ends no service.
            stream.flush()


def _ignore(number: int, _: FrameType | None) -> None:
    """Does nothing. Without a handler the signal would not be written to the pipe, or would end the process."""
