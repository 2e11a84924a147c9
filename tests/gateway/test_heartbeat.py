"""The comments of a silent stream, by a clock of the test's own."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, cast

import pytest

from gateway.pipeline.heartbeat import Heartbeat


class Clock:
    """The part of an event loop that a heartbeat needs."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> asyncio.Handle:
        heapq.heappush(self._due, (self.now + seconds, next(self._order), call))
        return cast(asyncio.Handle, object())

    def create_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.Future()
        with pytest.raises(StopIteration):
            work.send(None)
        done.set_result(None)
        return done

    def pass_by(self, seconds: float) -> None:
        until = self.now + seconds
        while self._due and self._due[0][0] <= until:
            self.now, _, call = heapq.heappop(self._due)
            call()
        self.now = until


def beating(settings: Any) -> tuple[Clock, Heartbeat, list[float]]:
    """Returns a clock, a heartbeat that is due after 10 seconds, and the times of its beats."""
    settings.HEARTBEAT_SECONDS = 10.0
    clock, beats = Clock(), list[float]()

    async def beat() -> None:
        beats.append(clock.now)

    return clock, Heartbeat(beat, cast(asyncio.AbstractEventLoop, clock)), beats


async def test_silence__is_filled_once_an_interval(settings: Any) -> None:
    clock, _, beats = beating(settings)

    clock.pass_by(35)

    assert beats == [10, 20, 30]


async def test_stream__that_speaks_in_time__has_no_comment_however_long_it_is(settings: Any) -> None:
    clock, heartbeat, beats = beating(settings)

    for _ in range(20):
        clock.pass_by(9)
        heartbeat.touch()

    assert beats == []


async def test_silence__after_a_word__is_measured_from_the_word(settings: Any) -> None:
    clock, heartbeat, beats = beating(settings)
    clock.pass_by(9)
    heartbeat.touch()

    clock.pass_by(21)

    assert beats == [19, 29]
