"""Answers that follow a JSON schema, by Converse's parameter or, for models without it, by a tool that the model must
call. The call's input becomes the answer's text, and the client sees no tool.

https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html names the models. Nova's guide recommends a
tool: https://docs.aws.amazon.com/nova/latest/userguide/prompting-structured-output.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from integrations.providers.bedrock.models import Model
from integrations.providers.common.parameters import FunctionTool, Mapped, ResponseFormat

_DESCRIPTION = "Gives the answer to the user. Call it once, with the whole answer."
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_LENGTH = 64


def schema_tool(fields: Mapping[str, Any], model: Model) -> str:
    """The name of the tool that stands for the schema; empty without one. It depends on the request alone: request and
    answer are translated separately."""
    answer_format = fields.get("response_format")
    if not isinstance(answer_format, Mapping) or answer_format.get("type") != "json_schema" or model.takes_schemas:
        return ""
    if not model.takes_tools or _has_to_call(fields.get("tool_choice")):
        return ""
    described = answer_format.get("json_schema")
    requested_name = described.get("name") if isinstance(described, Mapping) else ""
    name = _NOT_IN_NAMES.sub("_", str(requested_name or "response"))[:_NAME_LENGTH]
    taken = set(_names(fields))
    number = 2
    while name in taken:
        name, number = f"{name[: _NAME_LENGTH - 4]}_{number}", number + 1
    return name


def function_of(mapped: Mapped, answer_format: ResponseFormat, name: str) -> FunctionTool:
    """Raises UnsupportedParameterError unless the schema is of an object, which every tool requires."""
    if answer_format.schema.get("type", "object") != "object":
        raise mapped.refuse("response_format", "the schema has to be one of an object")
    return FunctionTool(name, answer_format.description or _DESCRIPTION, answer_format.schema)


def text_format(mapped: Mapped, model: Model, answer_format: ResponseFormat) -> dict[str, Any]:
    """Raises UnsupportedParameterError for a model without schemas and tools."""
    if model.is_claude and not model.takes_tools:
        raise mapped.refuse("response_format", f"{model.name} cannot answer after a schema")
    schema = {"schema": msgspec.json.encode(_closed(answer_format.schema)).decode(), "name": answer_format.name}
    if answer_format.description:
        schema["description"] = answer_format.description
    return {"type": "json_schema", "structure": {"jsonSchema": schema}}


def _has_to_call(choice: Any) -> bool:
    if isinstance(choice, Mapping):
        allowed = choice.get("allowed_tools")
        return choice.get("type") == "function" or (isinstance(allowed, Mapping) and allowed.get("mode") == "required")
    return bool(choice == "required")


def _names(fields: Mapping[str, Any]) -> Iterator[str]:
    calls = (call for message in fields["messages"] for call in message.get("tool_calls") or ())
    for tool in (*(fields.get("tools") or ()), *calls):
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping):
            yield str(function.get("name") or "")


def _closed(schema: Any) -> Any:
    """Closes all objects, as Converse requires
    (https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html)."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if closed.get("type") == "object" and isinstance(closed.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return closed
