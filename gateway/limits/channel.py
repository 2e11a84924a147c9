"""One Redis connection that many callers share.

Commands that arrive while an answer is awaited leave together in the next write, so that writes get larger under load.
Answers are parsed where they arrive, without a task or a stream.

This client is hand-made because redis-py costs several times the script's own time per command: with it, all limits add
8 to 15 % CPU per request (docs/performance.md, "What limits cost"; goal 20 %). It may go when `python -m
benchmarks.gateway --targets ours,ours-limits` stays within the goal with redis-py.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import hiredis
import redis

from gateway.limits.scripts import NO_SCRIPT, Script, packed

# When the loop runs this late, the delay is its own and not Redis's; the wait is then extended, up to the larger of the
# maximum and twice the timeout.
_MIN_LAG_SECONDS = 0.01
_MAX_WAIT_SECONDS = 1.0
_MORE = object()
# What a node of a cluster answers that does not hold the slot, or not all keys of it yet, or does not serve.
_REDIRECTIONS = frozenset({"MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"})
# What a server answers that does not serve any more, though the connection holds.
_NOT_PRIMARY = {"READONLY": "it is a replica", "MASTERDOWN": "it is a replica", "MOVED": "it is a node of a cluster"}


class RedisAwayError(Exception):
    pass


class Command:
    """A script to run for a project, with its packed arguments in `data`.

    Either `answered` or `failed` is called once, in the order of sending. The channel sets `sent_at`; `redirects`
    counts the cluster nodes that sent the command elsewhere.
    """

    __slots__ = ("data", "project", "redirects", "script", "sent_at")

    def __init__(self, project: str, script: Script, data: bytes = b"") -> None:
        self.project = project
        self.script = script
        self.data = data
        self.sent_at = 0.0
        self.redirects = 0

    def complete(self, run_id: str) -> None:
        """Called just before sending to the server whose start has this id; `data` does not change after this."""

    def answered(self, answer: Any) -> None:
        raise NotImplementedError

    def failed(self, error: RedisAwayError | redis.ResponseError) -> None:
        raise NotImplementedError


class AwaitedCommand(Command):
    __slots__ = ("answer",)

    def __init__(self, project: str, script: Script, data: bytes, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(project, script, data)
        self.answer: asyncio.Future[Any] = loop.create_future()

    def answered(self, answer: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def failed(self, error: RedisAwayError | redis.ResponseError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # The caller may have been cancelled.


class PlainCommand(Command):
    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__("", NO_SCRIPT, b"*1\r\n" + packed((name,)))

    def answered(self, answer: Any) -> None: ...

    def failed(self, error: RedisAwayError | redis.ResponseError) -> None: ...


class Channel(asyncio.Protocol):
    """Takes over a transport without outstanding answers.

    `on_lost` is called once, before commands fail, with the reason and with whether commands will fail. `on_redirected`
    takes over a command that a cluster node did not run, with the node's error.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        *,
        run_id: str,
        timeout: float,
        on_lost: Callable[[str, bool], None],
        on_redirected: Callable[[Command, str], None] | None = None,
    ) -> None:
        self._transport = transport
        self._run_id = run_id
        self._on_redirected = on_redirected
        self._timeout = timeout
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(replyError=redis.ResponseError, notEnoughData=_MORE)
        self._waiting: deque[Command] = deque()
        self._outbox: deque[Command] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._lost = False
        self._idle: asyncio.Future[None] | None = None
        transport.set_protocol(self)

    def send(self, command: Command) -> None:
        command.sent_at = self._loop.time()
        if not self._outbox and not self._waiting:
            self._loop.call_soon(self._flush)
        self._outbox.append(command)
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout, self._check)

    async def answered(self) -> None:
        if self._waiting or self._outbox:
            self._idle = self._idle or self._loop.create_future()
            await asyncio.shield(self._idle)

    def lose(self, reason: str) -> None:
        if self._lost:
            return
        self._lost = True
        if self._timer is not None:
            self._timer.cancel()
        self._transport.abort()
        self._on_lost(reason, bool(self._waiting or self._outbox))
        while self._waiting or self._outbox:
            (self._waiting or self._outbox).popleft().failed(RedisAwayError())
        self._note_idle()

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        # An answer may give the connection up, and then all commands have failed.
        while not self._lost and (answer := self._reader.gets()) is not _MORE:
            command = self._waiting.popleft()
            if isinstance(answer, redis.ResponseError):
                self._failed(command, answer)
            else:
                command.answered(answer)
        if self._waiting:
            return
        if not self._outbox:
            self._note_idle()
        else:
            # The write is deferred, because other callers of this turn of the loop may add commands.
            self._loop.call_soon(self._flush)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lose("it closed the connection" if exc is None else type(exc).__name__)

    def _flush(self) -> None:
        if self._waiting or not self._outbox:
            return
        self._waiting, self._outbox = self._outbox, self._waiting
        for command in self._waiting:
            command.complete(self._run_id)
        self._transport.write(b"".join([command.data for command in self._waiting]))

    def _note_idle(self) -> None:
        if self._idle is not None:
            self._idle.set_result(None)
            self._idle = None

    def _failed(self, command: Command, error: redis.ResponseError) -> None:
        kind = str(error).partition(" ")[0]
        if kind == "NOSCRIPT":
            command.data = command.script.in_full(command.data)
            self.send(command)
        elif kind in _REDIRECTIONS and self._on_redirected is not None:
            self._on_redirected(command, str(error))
        elif kind in _NOT_PRIMARY:
            command.failed(RedisAwayError())
            self.lose(_NOT_PRIMARY[kind])
        else:
            command.failed(error)

    def _check(self) -> None:
        timer, self._timer = self._timer, None
        commands = self._waiting or self._outbox
        if not commands:
            return
        now = self._loop.time()
        sent_at = commands[0].sent_at
        left = sent_at + self._timeout - now
        late = 0.0 if timer is None else now - timer.when()
        if left > 0:
            self._timer = self._loop.call_later(left, self._check)
        elif late > _MIN_LAG_SECONDS and now - sent_at < max(_MAX_WAIT_SECONDS, 2 * self._timeout):
            self._timer = self._loop.call_later(self._timeout, self._check)
        else:
            self.lose("it does not answer")
