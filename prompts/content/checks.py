from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

import jsonschema_rs

from integrations.providers.usage import estimated_tokens
from prompts.content.composition import Library, compose, is_composed
from prompts.content.templating import TYPES, find_placeholders
from prompts.content.version import VersionContent, check_content
from prompts.errors import InvalidVersionError

# A text with more stray braces is no template with typing errors, but another language.
MAX_STRAY_BRACES = 20
_MAX_MESSAGE_CHARACTERS = 300

_BRACES = re.compile(r"\{\{")


@dataclass(frozen=True, slots=True)
class Draft:
    """A version being written. `tools` and `response_format` are JSON values, or JSON as text."""

    system_prompt: str = ""
    variables: list[Any] = field(default_factory=list)
    tools: Any = None
    response_format: Any = None
    messages: list[Any] = field(default_factory=list)
    # The config that the version is to be one of, which it cannot include; None for a new one.
    config_id: UUID | None = None

    @property
    def texts(self) -> list[tuple[str, str]]:
        if not self.messages:
            return [("system_prompt", self.system_prompt)]
        return [
            (f"messages.{index}.content", message["content"])
            for index, message in enumerate(self.messages)
            if isinstance(message, Mapping) and isinstance(message.get("content"), str)
        ]


@dataclass(frozen=True, slots=True)
class Finding:
    """`field` is the path of the field at fault; `line` and `column` begin at 1 and are None for a fault without a
    place in a text."""

    severity: Literal["error", "warning"]
    field: str
    message: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class PromptVariable:
    name: str
    type: str
    required: bool
    is_declared: bool
    count: int
    first_line: int | None


@dataclass(frozen=True, slots=True)
class DraftCheck:
    """`token_count` is estimated from `size_bytes`, the texts' bytes of UTF-8."""

    findings: Sequence[Finding]
    variables: Sequence[PromptVariable]
    token_count: int
    size_bytes: int


def check_draft(draft: Draft, library: Library | None = None) -> DraftCheck:
    """Applies the rules of `check_content`, and warns of what these allow. Without `library` it does not check
    includes."""
    findings: list[Finding] = []
    tools = _parsed(draft.tools, "tools", findings)
    response_format = _parsed(draft.response_format, "response_format", findings)
    findings += _content_findings(draft, tools, response_format)
    findings += _schema_findings(response_format)
    for path, text in draft.texts:
        findings += _stray_braces(path, text)
    texts, declared = [text for _, text in draft.texts], draft.variables
    if library is not None and is_composed(draft.messages) and not any(one.severity == "error" for one in findings):
        try:
            made = compose(library, draft.config_id, draft.messages, draft.variables)
            texts, declared = [text for _, text in made.texts], made.variables
        except InvalidVersionError as error:
            findings += _errors(error)
    variables = _variables(texts, declared)
    findings += _unmatched(variables)
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return DraftCheck(findings, variables, estimated_tokens(size), size)


def _parsed(value: Any, name: str, findings: list[Finding]) -> Any:
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        findings.append(Finding("error", name, f"Not JSON: {error.msg}.", error.lineno, error.colno))
    except (ValueError, RecursionError):
        findings.append(Finding("error", name, "Not JSON that can be read."))
    return None


def _content_findings(draft: Draft, tools: Any, response_format: Any) -> Iterator[Finding]:
    if tools is not None and not isinstance(tools, list):
        yield Finding("error", "tools", "Must be a list.")
        tools = None
    try:
        check_content(
            VersionContent(
                draft.system_prompt,
                messages=draft.messages,
                variables=draft.variables,
                tools=tools or [],
                response_format=response_format,
            )
        )
    except InvalidVersionError as error:
        yield from _errors(error)
    except UnicodeEncodeError:
        yield Finding("error", "system_prompt", "Holds text that is not well-formed.")


def _errors(error: InvalidVersionError) -> Iterator[Finding]:
    for path, messages in (error.details or {}).items():
        yield from (Finding("error", path, message) for message in messages)


def _schema_findings(response_format: Any) -> Iterator[Finding]:
    contract = response_format.get("json_schema") if isinstance(response_format, Mapping) else None
    if not isinstance(contract, Mapping) or response_format.get("type") != "json_schema":
        return
    path = "response_format.json_schema"
    if not contract.get("name"):
        yield Finding("warning", f"{path}.name", "Providers expect a name.")
    schema = contract.get("schema")
    if schema is None:
        yield Finding("warning", f"{path}.schema", "Without a schema answers are not checked.")
        return
    try:
        jsonschema_rs.meta.validate(schema)
    except jsonschema_rs.ValidationError as error:
        place = "/".join([f"{path}.schema", *map(str, error.instance_path)])
        yield Finding("error", place, f"Not a JSON schema: {error.message}"[:_MAX_MESSAGE_CHARACTERS])
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError) as error:
        yield Finding("error", f"{path}.schema", f"Not a JSON schema: {error}"[:_MAX_MESSAGE_CHARACTERS])


def _stray_braces(path: str, text: str) -> Iterator[Finding]:
    placeholders = {placeholder.start for placeholder in find_placeholders(text)}
    starts = (found.start() for found in _BRACES.finditer(text))
    strays = [start for start in starts if start not in placeholders][:MAX_STRAY_BRACES]
    for start in strays:
        line, column = _place(text, start)
        message = "These braces hold no variable's name and stay as they are written."
        yield Finding("warning", path, message, line, column)


def _unmatched(variables: Iterable[PromptVariable]) -> Iterator[Finding]:
    for variable in variables:
        if not variable.is_declared:
            message = f"{variable.name} is not declared: left out of a request, its braces stay as they are written."
            yield Finding("warning", "variables", message, variable.first_line)
        elif not variable.count:
            yield Finding("warning", "variables", f"{variable.name} is declared and not used in the text.")


def _variables(texts: Iterable[str], variables: Iterable[Any]) -> list[PromptVariable]:
    first: dict[str, int] = {}
    count: dict[str, int] = {}
    for text in texts:
        for placeholder in find_placeholders(text):
            first.setdefault(placeholder.name, _place(text, placeholder.start)[0])
            count[placeholder.name] = count.get(placeholder.name, 0) + 1
    declared = {item["name"]: item for item in variables if _is_named(item)}
    return [
        PromptVariable(
            name=name,
            type=_type_of(declared.get(name, {})),
            required=declared.get(name, {}).get("required") is True,
            is_declared=name in declared,
            count=count.get(name, 0),
            first_line=first.get(name),
        )
        for name in dict.fromkeys([*declared, *first])
    ]


def _is_named(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("name"), str) and bool(item["name"])


def _type_of(variable: Mapping[str, Any]) -> str:
    kind = variable.get("type", "string")
    return kind if isinstance(kind, str) and kind in TYPES else "string"


def _place(text: str, index: int) -> tuple[int, int]:
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)
