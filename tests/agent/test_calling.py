from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from agent.tools.base import ToolContext, ToolOutcome
from agent.tools.scopes import Granted
from agent.turn import calling
from agent.turn.loop import _result
from agent.worker import threads
from agent.worker.limits import PARALLEL_CALLS
from tests.waiting import TIMEOUT_SECONDS

CONTEXT = ToolContext(uuid4(), Granted(frozenset(), frozenset()), datetime(2026, 11, 21, tzinfo=UTC))
FINE = ToolOutcome("{}", is_error=False)

Call = Callable[[ToolContext, str, Any], ToolOutcome]


@pytest.fixture(autouse=True)
def no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "close_old_connections", lambda: None)


def use(monkeypatch: pytest.MonkeyPatch, tool: Call) -> None:
    monkeypatch.setattr(calling, "call", tool)


def made(name: str) -> dict[str, Any]:
    return {"id": name, "function": {"name": name, "arguments": "{}"}}


async def step(count: int) -> list[tuple[dict[str, Any], ToolOutcome, float]]:
    room = asyncio.Semaphore(PARALLEL_CALLS)
    return await asyncio.gather(*(_result(CONTEXT, made(str(number)), room) for number in range(count)))


async def test_calls__of_one_step__run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(PARALLEL_CALLS)

    def tool(context: ToolContext, name: str, arguments: Any) -> ToolOutcome:
        together.wait(TIMEOUT_SECONDS)
        return FINE

    use(monkeypatch, tool)

    assert [outcome for _, outcome, _ in await step(PARALLEL_CALLS)] == [FINE] * PARALLEL_CALLS


async def test_calls__more_than_there_is_room_for__wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, now, most = threading.Lock(), 0, 0

    def tool(context: ToolContext, name: str, arguments: Any) -> ToolOutcome:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        with lock:
            now -= 1
        return FINE

    use(monkeypatch, tool)

    assert len(await step(4 * PARALLEL_CALLS)) == 4 * PARALLEL_CALLS
    assert most <= PARALLEL_CALLS


async def test_call__without_an_end__is_given_up(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.AGENT_TOOL_SECONDS = 0.1
    ended = threading.Event()

    def tool(context: ToolContext, name: str, arguments: Any) -> ToolOutcome:
        ended.wait(TIMEOUT_SECONDS)
        return FINE

    use(monkeypatch, tool)

    ((_, outcome, _),) = await step(1)
    ended.set()

    assert outcome.is_error
    assert "tool_timeout" in outcome.content


async def test_call__one_too_many__is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, lambda *given: FINE)

    _, outcome, _ = await _result(CONTEXT, made("x"), None)

    assert outcome.is_error
    assert "too_many_calls" in outcome.content
