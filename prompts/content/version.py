from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from prompts.content.messages import check_messages, shown_messages
from prompts.content.templating import MAX_RENDERED_BYTES, RoleAndText, compile_messages
from prompts.errors import InvalidVersionError

MAX_TEMPERATURE = 2.0
MAX_TOKENS = 1_000_000
MAX_TOOLS = 128
MAX_JSON_BYTES = 1_048_576
# Stored JSON has to be decoded by every provider later, so its depth and size are bounded here.
MAX_JSON_DEPTH = 64
RESPONSE_FORMATS = ("text", "json_object", "json_schema")

# The form of names is documented at https://platform.openai.com/docs/api-reference/chat/create
_FUNCTION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class VersionContent:
    system_prompt: str = ""
    model: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    variables: list[dict[str, Any]] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    response_format: dict[str, Any] | None = None
    commit_message: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def texts(self) -> list[RoleAndText]:
        return shown_messages(self.system_prompt, self.messages)


def check_content(content: VersionContent) -> None:
    """Raises InvalidVersionError with every field at fault."""
    problems: dict[str, list[str]] = {}
    for check in _CHECKS:
        try:
            check(content)
        except InvalidVersionError as error:
            problems |= {path: list(messages) for path, messages in (error.details or {}).items()}
    if problems:
        raise InvalidVersionError(problems)


def _check_prompt(content: VersionContent) -> None:
    if content.messages:
        if content.system_prompt:
            raise _invalid("messages", "A version has either a system_prompt or messages.")
        check_messages(content.messages)
        return
    if not content.system_prompt.strip():
        raise _invalid("system_prompt", "This field may not be blank.")
    size = len(content.system_prompt.encode())
    if size > MAX_RENDERED_BYTES:
        raise _invalid("system_prompt", f"{size} bytes, at most {MAX_RENDERED_BYTES} are allowed.")


def _check_variables(content: VersionContent) -> None:
    compile_messages((), content.variables)


def _check_tools(content: VersionContent) -> None:
    if len(content.tools) > MAX_TOOLS:
        raise _invalid("tools", f"At most {MAX_TOOLS} tools are allowed.")
    names: set[str] = set()
    for index, tool in enumerate(content.tools):
        name = _function_name(tool, f"tools.{index}")
        if name in names:
            raise _invalid(f"tools.{index}.function.name", f"{name} is defined twice.")
        names.add(name)
    _check_json(content.tools, "tools")


def _function_name(tool: Any, path: str) -> str:
    if not isinstance(tool, Mapping):
        raise _invalid(path, "Must be an object.")
    if tool.get("type") != "function":
        raise _invalid(f"{path}.type", "Must be 'function'.")
    function = tool.get("function")
    if not isinstance(function, Mapping):
        raise _invalid(f"{path}.function", "Must be an object.")
    name = function.get("name")
    if not isinstance(name, str) or not _FUNCTION_NAME.fullmatch(name):
        raise _invalid(f"{path}.function.name", "Must be 1 to 64 letters, digits, underscores or hyphens.")
    for part, kind, expected in (("parameters", Mapping, "an object"), ("description", str, "a string")):
        if not isinstance(function.get(part), kind | None):
            raise _invalid(f"{path}.function.{part}", f"Must be {expected}.")
    return name


def _check_format(content: VersionContent) -> None:
    response_format = content.response_format
    if response_format is None:
        return
    if not isinstance(response_format, Mapping):
        raise _invalid("response_format", "Must be an object.")
    kind = response_format.get("type")
    if not isinstance(kind, str) or kind not in RESPONSE_FORMATS:
        raise _invalid("response_format.type", f"Must be one of {', '.join(RESPONSE_FORMATS)}.")
    if kind == "json_schema" and not isinstance(response_format.get("json_schema"), Mapping):
        raise _invalid("response_format.json_schema", "Must be an object when the type is json_schema.")
    _check_json(response_format, "response_format")


def _check_json(value: Any, path: str) -> None:
    if _is_deeper(value, MAX_JSON_DEPTH):
        raise _invalid(path, f"Nested more than {MAX_JSON_DEPTH} levels deep.")
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except ValueError:  # Encoding a single surrogate raises UnicodeEncodeError, which is a ValueError too.
        raise _invalid(path, "Holds a number out of range or text that is not well-formed.") from None
    if size > MAX_JSON_BYTES:
        raise _invalid(path, f"{size} bytes, at most {MAX_JSON_BYTES} are allowed.")


def _is_deeper(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        level = [inner for item in level for inner in _members(item)]
        if not level:
            return False
    return True


def _members(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _invalid(path: str, problem: str) -> InvalidVersionError:
    return InvalidVersionError({path: [problem]})


_CHECKS: tuple[Callable[[VersionContent], None], ...] = (_check_prompt, _check_variables, _check_tools, _check_format)
