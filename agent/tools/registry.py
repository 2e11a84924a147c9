"""The registry of tools: all of them, those that a set of scopes allows, and the one way to call them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from agent.tools import billing, llm, observability, project
from agent.tools.arguments import read_arguments
from agent.tools.base import OUTPUT_CHARACTERS, Tool, ToolContext, ToolOutcome
from agent.tools.output import render
from agent.tools.scopes import Granted
from core.errors import ApplicationError, NotFoundError, PermissionDeniedError
from core.http.exception_handler import error_body, log_unexpected, translate

logger = logging.getLogger("agent.tools")

ALL: tuple[Tool, ...] = (*project.TOOLS, *llm.TOOLS, *observability.TOOLS, *billing.TOOLS)

_BY_NAME: Mapping[str, Tool] = {tool.name: tool for tool in ALL}
_MAX_NAME_CHARACTERS = 80
_MESSAGE_CHARACTERS = 1_000


def offered(granted: Granted) -> list[Tool]:
    """Returns the granted tools, in the order of ALL."""
    return [tool for tool in ALL if granted.allows(tool.name, tool.scope)]


def call(context: ToolContext, name: str, arguments: str | Mapping[str, Any]) -> ToolOutcome:
    """Calls a tool. Never raises: every failure is returned to the model, in the envelope of the management API.

    Blocks on SQL and ClickHouse, so it belongs into a thread. Scopes are checked here too: a model, or a text that it
    read, may name a tool that was not offered.
    """
    try:
        tool = _allowed(context, name)
        return ToolOutcome(render(tool.run(context, read_arguments(arguments, tool.arguments))), is_error=False)
    except Exception as error:
        return _failure(error, name)


def _allowed(context: ToolContext, name: str) -> Tool:
    tool = _BY_NAME.get(name)
    if tool is None:
        raise NotFoundError(f"There is no tool {name[:_MAX_NAME_CHARACTERS]!a}.", code="unknown_tool")
    if not context.granted.entitles_to(name):
        raise PermissionDeniedError(f"Your role or API key does not allow the tool {name}.", code="permission_denied")
    if tool.scope not in context.granted.scopes:
        raise PermissionDeniedError(f"The tool {name} needs the scope {tool.scope}, which this project does not grant.")
    return tool


def _failure(error: Exception, name: str) -> ToolOutcome:
    known = translate(error)
    if known is None:
        log_unexpected(error, f"tool:{name}" if name in _BY_NAME else "tool")
        known = ApplicationError("The tool failed unexpectedly.")
    logger.info("tool.refused tool=%s code=%s", name if name in _BY_NAME else "unknown", known.code)
    body = error_body(known)
    body["error"]["message"] = str(body["error"]["message"])[:_MESSAGE_CHARACTERS]
    content = render(body)
    return ToolOutcome(content[:OUTPUT_CHARACTERS], is_error=True)
