"""Checks in a process of their own, which is killed when one takes too long: the library that checks holds the
interpreter while it does, and cannot be interrupted."""

from __future__ import annotations

import asyncio
import atexit
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import msgspec
from django.conf import settings

CHECK_SECONDS = 1.0
_REASON_SECONDS = 0.25
# Behind others that take long.
_QUEUE_SECONDS = 2.0
_START_SECONDS = 10.0

_decode_index = msgspec.msgpack.Decoder(int | None).decode
_decode_reason = msgspec.msgpack.Decoder(str).decode
_encode = msgspec.msgpack.Encoder().encode


class CheckTooLongError(Exception):
    """It is not known whether the text is of the schema."""


class CheckProcess:
    """One a worker, started when it is first needed. The answers come one by one, in a thread that waits for them."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="contract")
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    async def violation(self, schema: bytes, contents: Sequence[str]) -> tuple[int, str] | None:
        """The index of the first text that is not of the schema, and why. Raises CheckTooLongError."""
        asked = time.monotonic()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._violation, schema, contents, asked)

    def close(self) -> None:
        process, connection, self._process, self._connection = self._process, self._connection, None, None
        if connection is not None:
            connection.close()
        if process is not None:
            process.kill()
            process.wait()

    def _violation(self, schema: bytes, contents: Sequence[str], asked: float) -> tuple[int, str] | None:
        if time.monotonic() - asked > _QUEUE_SECONDS:
            raise CheckTooLongError
        try:
            connection = self._connection or self._started()
            connection.send_bytes(_encode((schema, contents)))
            index = _decode_index(self._answer(connection, CHECK_SECONDS))
        except (OSError, EOFError, CheckTooLongError) as error:
            self.close()
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
        command = [sys.executable, "-m", "gateway.contract.child", str(theirs.fileno())]
        self._process = subprocess.Popen(  # noqa: S603 - no word of it comes from outside
            command, pass_fds=[theirs.fileno()], cwd=settings.BASE_DIR, stdin=subprocess.DEVNULL
        )
        theirs.close()
        self._connection = ours
        # The first check waits for it to be there, and is then as quick as any.
        ours.send_bytes(_encode((b"{}", [])))
        self._answer(ours, _START_SECONDS)
        return ours

    def _answer(self, connection: Connection, seconds: float) -> bytes:
        if not connection.poll(seconds):
            raise CheckTooLongError
        return connection.recv_bytes()


check_process = CheckProcess()
atexit.register(check_process.close)
