"""Queues tool calls by project, so that no project's clients occupy all the threads of tools."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

from django.conf import settings

from agent.tools.base import ToolContext, ToolOutcome
from agent.tools.registry import call
from agent.turn.calling import timed_out
from agent.worker.limits import PARALLEL_CALLS
from agent.worker.threads import in_tool_thread

# One queue for each project, which this worker keeps while calls are in it.
_rooms: WeakValueDictionary[UUID, asyncio.Semaphore] = WeakValueDictionary()


async def outcome_in_turn(context: ToolContext, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
    """Returns a call's outcome; waiting counts as time of the call. Never raises, unless it is cancelled."""
    room = _rooms.setdefault(context.project_id, asyncio.Semaphore(PARALLEL_CALLS))
    try:
        async with asyncio.timeout(settings.AGENT_TOOL_SECONDS):
            await room.acquire()
            work = asyncio.create_task(in_tool_thread(call, context, name, arguments))
            # A thread cannot be stopped: it keeps its place after its caller has given up.
            work.add_done_callback(lambda _: room.release())
            return await asyncio.shield(work)
    except TimeoutError:
        return timed_out()
