"""One connection to Redis on which many callers ask. What is asked while an answer is awaited leaves in one write once
it has come: the more ask, the more share a command. Answers are read where they arrive, without a task or a stream."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import hiredis
import redis
from typing_extensions import override

from gateway.limits.scripts import Script

# A loop that is late by so much is what kept the answer waiting, and for no longer than so long or twice the patience.
_LATE_SECONDS = 0.01
_LONGEST_SECONDS = 1.0
_MORE = object()


class RedisAwayError(Exception):
    """Redis does not answer in time, or there is no connection."""


class Question:
    """A script to be run by `command`. Either `answered` or `failed` is called, once, in the order in which questions
    were sent. `sent_at` is the channel's."""

    __slots__ = ("command", "script", "sent_at")

    def __init__(self, script: Script, command: bytes = b"") -> None:
        self.script = script
        self.command = command
        self.sent_at = 0.0

    def complete(self) -> None:
        """Called when the question leaves: from now on `command` stands."""

    def answered(self, answer: Any) -> None:
        raise NotImplementedError

    def failed(self, error: RedisAwayError | redis.ResponseError) -> None:
        raise NotImplementedError


class Awaited(Question):
    """`answer` is what the script will have returned; it fails with RedisAwayError, or with redis.ResponseError when
    the script itself does."""

    __slots__ = ("answer",)

    def __init__(self, script: Script, command: bytes, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(script, command)
        self.answer: asyncio.Future[Any] = loop.create_future()

    @override
    def answered(self, answer: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    @override
    def failed(self, error: RedisAwayError | redis.ResponseError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # nobody may be waiting any more


class Channel(asyncio.Protocol):
    """Takes over a transport whose server has answered so far. `on_lost` is told once why there will be no answer any
    more; everything that waits has failed by then."""

    def __init__(self, transport: asyncio.Transport, *, patience: float, on_lost: Callable[[str], None]) -> None:
        """`patience`: seconds to wait for an answer before Redis counts as away."""
        self._transport = transport
        self._patience = patience
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(replyError=redis.ResponseError, notEnoughData=_MORE)
        self._waiting: deque[Question] = deque()
        self._outbox: deque[Question] = deque()
        self._watch: asyncio.TimerHandle | None = None
        self._lost = False
        transport.set_protocol(self)

    def send(self, question: Question) -> None:
        question.sent_at = self._loop.time()
        if not self._outbox and not self._waiting:
            self._loop.call_soon(self._flush)
        self._outbox.append(question)
        if self._watch is None:
            self._watch = self._loop.call_later(self._patience, self._look)

    def lose(self, reason: str) -> None:
        if self._lost:
            return
        self._lost = True
        if self._watch is not None:
            self._watch.cancel()
        self._transport.abort()
        self._on_lost(reason)
        while self._waiting or self._outbox:
            (self._waiting or self._outbox).popleft().failed(RedisAwayError())

    @override
    def data_received(self, data: bytes) -> None:
        if self._lost:
            return  # it came too late: nobody waits for it any more
        self._reader.feed(data)
        while (answer := self._reader.gets()) is not _MORE:
            question = self._waiting.popleft()
            if isinstance(answer, redis.ResponseError):
                self._failed(question, answer)
            else:
                question.answered(answer)
        if self._outbox and not self._waiting:
            # Not at once: others of this turn may still want to ask.
            self._loop.call_soon(self._flush)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.lose("it closed the connection" if exc is None else type(exc).__name__)

    def _flush(self) -> None:
        if self._waiting or not self._outbox:
            return
        self._waiting, self._outbox = self._outbox, self._waiting
        for question in self._waiting:
            question.complete()
        self._transport.write(b"".join([question.command for question in self._waiting]))

    def _failed(self, question: Question, error: redis.ResponseError) -> None:
        if str(error).startswith("NOSCRIPT"):
            question.command = question.script.in_full(question.command)
            self.send(question)
        else:
            question.failed(error)

    def _look(self) -> None:
        """One timer for all: it looks at the question that waits the longest."""
        watch, self._watch = self._watch, None
        questions = self._waiting or self._outbox
        if not questions:
            return
        now = self._loop.time()
        sent_at = questions[0].sent_at
        left = sent_at + self._patience - now
        late = 0.0 if watch is None else now - watch.when()
        if left > 0:
            self._watch = self._loop.call_later(left, self._look)
        elif late > _LATE_SECONDS and now - sent_at < max(_LONGEST_SECONDS, 2 * self._patience):
            self._watch = self._loop.call_later(self._patience, self._look)
        else:
            self.lose("it does not answer")
