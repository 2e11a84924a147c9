from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from agent.tools import billing, llm, observability, project
from agent.tools.base import OUTPUT_CHARACTERS, Arguments, Tool, ToolContext, ToolOutcome
from agent.tools.output import render
from agent.tools.schema import choices_of, schema_of
from agent.tools.scopes import Granted
from core.errors import ApplicationError, NotFoundError, PermissionDeniedError, ValidationError
from core.http.exception_handler import error_body, log_unexpected, translate

logger = logging.getLogger("agent.tools")

ALL: tuple[Tool, ...] = (*project.TOOLS, *llm.TOOLS, *observability.TOOLS, *billing.TOOLS)

_BY_NAME: Mapping[str, Tool] = {tool.name: tool for tool in ALL}
_MAX_NAME_CHARACTERS = 80
_MESSAGE_CHARACTERS = 1_000


# The maximum length in characters, far above any tool's arguments; longer text is refused before it is decoded.
MAXIMUM_CHARACTERS = 100_000

_PATH = re.compile(r" - at `\$\.?([^`\[]*)[^`]*`$")
_MISSING = re.compile(r"missing required field `([^`]*)`")
_UNKNOWN = re.compile(r"contains unknown field `(.*)`", re.DOTALL)

Known = TypeVar("Known", bound=Arguments)


def read_arguments(given: str | Mapping[str, Any], known: type[Known]) -> Known:
    """Takes JSON text or a decoded value; null counts as left out. Raises ValidationError naming the field."""
    values = _decoded(given) if isinstance(given, str) else given
    if not isinstance(values, Mapping):
        raise ValidationError("The arguments must be a JSON object.", code="invalid_json")
    chosen = {name: value for name, value in values.items() if value is not None}
    for name, value in chosen.items():
        if any(_unstorable(text) for text in _texts((name, value))):
            raise _refused(_printable(str(name)), "NUL characters and single surrogates are not allowed in text.")
    try:
        return msgspec.convert(chosen, known)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _named(str(error), known) from None


def _decoded(text: str) -> Any:
    if len(text) > MAXIMUM_CHARACTERS:
        raise ValidationError(f"The arguments have more than {MAXIMUM_CHARACTERS} characters.", code="invalid_json")
    try:
        return msgspec.json.decode(text) if text.strip() else {}
    except (ValueError, RecursionError):  # A single surrogate raises UnicodeEncodeError, which is a ValueError.
        raise ValidationError("The arguments are not valid JSON.", code="invalid_json") from None


def _named(message: str, known: type[Arguments]) -> ValidationError:
    path, arguments = _PATH.search(message), schema_of(known)["properties"]
    # A field that an object within an argument lacks, or has too much, is told under the argument's name.
    if path is None or path[1] not in arguments:
        if found := _UNKNOWN.search(message):
            names = ", ".join(arguments) or "none"
            return _refused(_printable(found[1]), f"There is no such argument. There are: {names}.")
        if found := _MISSING.search(message):
            return _refused(found[1], "This argument is required.", code="missing_field")
    field = path[1] if path else "arguments"
    problem = message[: path.start()] if path else message
    if choices := choices_of(known, field):
        problem = f"Must be one of {', '.join(map(str, choices))}"
    return _refused(field, f"{problem}.")


def _refused(field: str, problem: str, code: str = "invalid_value") -> ValidationError:
    return ValidationError(f"{field}: {problem}", code=code, details={field: [problem]})


def _printable(name: str) -> str:
    return ascii(name[:80])[1:-1]


def _unstorable(text: str) -> bool:
    return "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text)


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list | tuple):
            waiting.extend(item)
        elif isinstance(item, Mapping):
            waiting.extend(item)
            waiting.extend(item.values())


def offered(granted: Granted) -> list[Tool]:
    return [tool for tool in ALL if granted.allows(tool.name, tool.scope)]


def call(context: ToolContext, name: str, arguments: str | Mapping[str, Any]) -> ToolOutcome:
    """Never raises: every failure is returned to the model, in the envelope of the management API.

    Blocks on SQL and ClickHouse, so call it in a thread. It checks scopes too: a model, or a text that it read, may
    name a tool that was not offered.
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
