"""Schema-following answers for models without that feature (Opus before 4.1, others before 4.5): the model must call a
tool whose input is the answer. The client receives the input as content and never sees the call.
https://platform.claude.com/docs/en/build-with-claude/structured-outputs"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.anthropic.models import Rules, rules_of
from integrations.providers.anthropic.shapes import Block
from integrations.providers.base import ChatRequest
from integrations.providers.common.parameters import Mapped, ResponseFormat

NAME = "answer_after_schema"
_FORCING = ("any", "tool")
# The API refuses three keywords with "input_schema does not support oneOf, allOf, or anyOf at the top level".
_NOT_AT_ROOT = frozenset({"oneOf", "allOf", "anyOf"})

Json = dict[str, Any]


def with_answer_tool(
    mapped: Mapped, rules: Rules, answer_format: ResponseFormat | None, tools: list[Json], choice: Json | None
) -> tuple[list[Json], Json | None]:
    """Adds the answer tool, if the schema needs one, to the tools and the tool choice.

    If the client has tools of its own, the model calls one of them or answers; if it must call one, no answer follows
    the schema. Raises UnsupportedParameterError unless the schema is of an object: a tool's input always is one.
    """
    if answer_format is None or answer_format.kind != "json_schema" or rules.schema:
        return tools, choice
    if choice is not None and choice["type"] in _FORCING:
        return tools, choice
    if answer_format.schema.get("type", "object") != "object" or not _NOT_AT_ROOT.isdisjoint(answer_format.schema):
        raise mapped.refuse("response_format", "this model follows a schema of an object only")
    mapped.notes.append("response_format: asked for as the input of a tool, this model follows no schema strictly")
    forced: Json = {"type": "tool", "name": NAME}
    if tools and (choice is None or choice["type"] == "auto"):
        forced = {"type": "any"}
    return [*tools, _tool(answer_format)], {**forced, "disable_parallel_tool_use": True}


def answers_by_tool(request: ChatRequest) -> bool:
    answer_format = request.fields.get("response_format")
    is_schema = isinstance(answer_format, Mapping) and answer_format.get("type") == "json_schema"
    return is_schema and not rules_of(request.model).schema


def is_answer(block: Block) -> bool:
    return block.type == "tool_use" and block.name == NAME


def _tool(answer_format: ResponseFormat) -> Json:
    description = f"Gives the answer ({answer_format.name}). Call this tool to answer; nothing else is read."
    if answer_format.description:
        description = f"{description}\n\n{answer_format.description}"
    return {"name": NAME, "description": description, "input_schema": {"type": "object", **answer_format.schema}}
