from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from agent.mcp.server import outcome_in_turn
from agent.tools.base import ToolContext, ToolOutcome
from agent.tools.scopes import Granted
from agent.worker.limits import PARALLEL_CALLS, TOOL_THREADS
from tests.waiting import TIMEOUT_SECONDS


class Door:
    def __init__(self) -> None:
        self.opened = threading.Event()
        self.inside: list[uuid.UUID] = []
        self._entered = threading.Semaphore(0)

    def call(self, context: ToolContext, name: str, arguments: Any) -> ToolOutcome:
        self.inside.append(context.project_id)
        self._entered.release()
        if name == "closed":
            assert self.opened.wait(TIMEOUT_SECONDS)
        return ToolOutcome("{}", is_error=False)

    async def until_inside(self, number: int) -> None:
        for _ in range(number):
            assert await asyncio.to_thread(self._entered.acquire, timeout=TIMEOUT_SECONDS)


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[Door]:
    made = Door()
    settings.AGENT_TOOL_SECONDS = 2 * TIMEOUT_SECONDS
    monkeypatch.setattr("agent.mcp.server.call", made.call)
    yield made
    made.opened.set()


async def call(project_id: uuid.UUID, name: str = "closed") -> ToolOutcome:
    return await outcome_in_turn(ToolContext(project_id, Granted(frozenset(), frozenset()), timezone.now()), name, {})


async def test_turns__more_than_places__the_others_wait_and_all_are_served(door: Door) -> None:
    project = uuid.uuid4()
    calls = [asyncio.create_task(call(project)) for _ in range(3 * PARALLEL_CALLS)]
    await door.until_inside(PARALLEL_CALLS)
    await asyncio.sleep(0)

    assert door.inside.count(project) == PARALLEL_CALLS
    assert not any(task.done() for task in calls)
    door.opened.set()
    assert not any(outcome.is_error for outcome in await asyncio.gather(*calls))


async def test_turns__of_another_project__are_not_held_up(door: Door) -> None:
    project, other = uuid.uuid4(), uuid.uuid4()
    calls = [asyncio.create_task(call(project)) for _ in range(2 * TOOL_THREADS)]
    await door.until_inside(PARALLEL_CALLS)

    assert not (await call(other, "open")).is_error
    assert not any(task.done() for task in calls)
    door.opened.set()
    await asyncio.gather(*calls)


async def test_turns__nobody_waits_any_more__threads_keep_their_places(door: Door, settings: Settings) -> None:
    project = uuid.uuid4()
    calls = [asyncio.create_task(call(project)) for _ in range(PARALLEL_CALLS)]
    await door.until_inside(PARALLEL_CALLS)
    for task in calls:
        task.cancel()
    await asyncio.wait(calls)

    settings.AGENT_TOOL_SECONDS = 0.05
    refused = await call(project, "open")
    assert json.loads(refused.content)["error"]["code"] == "tool_timeout"
    assert door.inside.count(project) == PARALLEL_CALLS

    settings.AGENT_TOOL_SECONDS = 2 * TIMEOUT_SECONDS
    door.opened.set()
    assert not (await call(project, "open")).is_error


async def test_turns__left_while_waiting__are_never_taken(door: Door) -> None:
    project = uuid.uuid4()
    calls = [asyncio.create_task(call(project)) for _ in range(PARALLEL_CALLS)]
    await door.until_inside(PARALLEL_CALLS)
    waiting = asyncio.create_task(call(project))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    door.opened.set()
    await asyncio.gather(*calls)

    assert not (await call(project, "open")).is_error
    assert door.inside.count(project) == PARALLEL_CALLS + 1
