from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from agent.tools.base import ToolContext, ToolOutcome
from agent.tools.output import render
from agent.tools.registry import ALL, call
from agent.worker.threads import in_tool_thread

_KNOWN = frozenset(tool.name for tool in ALL)


async def outcome_of(context: ToolContext, name: str, arguments: str | Mapping[str, Any]) -> ToolOutcome:
    try:
        async with asyncio.timeout(settings.AGENT_TOOL_SECONDS):
            return await in_tool_thread(call, context, name, arguments)
    except TimeoutError:
        return timed_out()


def timed_out() -> ToolOutcome:
    return refused("tool_timeout", f"The tool gave no result within {settings.AGENT_TOOL_SECONDS:g} seconds.")


def refused(code: str, message: str) -> ToolOutcome:
    error = {"type": "api_error", "code": code, "message": message}
    return ToolOutcome(render({"error": error}), is_error=True)


def logged_name(name: str) -> str:
    """Returns the part of a name that may be logged, because models and clients make names up."""
    return name if name in _KNOWN else "unknown"
