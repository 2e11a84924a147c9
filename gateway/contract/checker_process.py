"""Runs schema checks in a process of their own, which is killed when a check takes too long.

The validation library holds the interpreter's lock and cannot be interrupted.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection

import msgspec
from django.conf import settings

CHECK_SECONDS = 1.0
_REASON_SECONDS = 0.25
# The maximum wait of a check behind slow ones, after which it fails.
_QUEUE_SECONDS = 2.0
_START_SECONDS = 10.0

_decode_index = msgspec.msgpack.Decoder(int | None).decode
_decode_reason = msgspec.msgpack.Decoder(str).decode
_encode = msgspec.msgpack.Encoder().encode


class CheckTooLongError(Exception):
    pass


class CheckMovedError(Exception):
    pass


@dataclass(frozen=True)
class Check:
    """Texts to check against a JSON schema, with two callbacks that the process's thread calls.

    `belongs_here` is called when the check's turn comes, `on_overrun` before the next check if this one began and did
    not finish.
    """

    schema: bytes
    contents: Sequence[str]
    belongs_here: Callable[[], bool]
    on_overrun: Callable[[], None]


class CheckProcess:
    def __init__(self, name: str) -> None:
        self._threads = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    async def violation(self, check: Check) -> tuple[int, str] | None:
        """Returns the index of the first text that violates the schema, and the reason; None if all texts match.

        Raises CheckTooLongError after the time limit, and CheckMovedError if the check belongs to another process.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._violation, check, time.monotonic())

    def close(self) -> None:
        process, connection, self._process, self._connection = self._process, self._connection, None, None
        if connection is not None:
            connection.close()
        if process is not None:
            process.kill()
            process.wait()

    def _violation(self, check: Check, requested_at: float) -> tuple[int, str] | None:
        if not check.belongs_here():
            raise CheckMovedError
        if time.monotonic() - requested_at > _QUEUE_SECONDS:
            raise CheckTooLongError
        try:
            connection = self._connection or self._started()
            connection.send_bytes(_encode((check.schema, check.contents)))
            index = _decode_index(self._answer(connection, CHECK_SECONDS))
        except (OSError, EOFError, CheckTooLongError) as error:
            self.close()
            check.on_overrun()
            raise CheckTooLongError from error
        if index is None:
            return None
        try:
            return index, _decode_reason(self._answer(connection, _REASON_SECONDS))
        except (OSError, EOFError, CheckTooLongError):
            self.close()
            return index, "fails"

    def _started(self) -> Connection:
        ours, theirs = multiprocessing.Pipe()
        command = [sys.executable, "-m", "gateway.contract.checker_main", str(theirs.fileno())]
        self._process = subprocess.Popen(  # noqa: S603 - no word of it comes from outside
            command, pass_fds=[theirs.fileno()], cwd=settings.BASE_DIR, stdin=subprocess.DEVNULL
        )
        theirs.close()
        self._connection = ours
        # An empty check waits for the process to start, so that the first real one is as quick as any.
        ours.send_bytes(_encode((b"{}", [])))
        self._answer(ours, _START_SECONDS)
        return ours

    def _answer(self, connection: Connection, seconds: float) -> bytes:
        if not connection.poll(seconds):
            raise CheckTooLongError
        return connection.recv_bytes()
