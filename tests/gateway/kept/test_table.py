"""The table of ids against the vendors' SDKs: each field of their requests that looks like an id has an entry, or a
reason here why it needs none."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import pytest
import typing_extensions
from anthropic.types import message_count_tokens_params, message_create_params
from anthropic.types.beta import message_create_params as beta_message_create_params
from google.genai import types as google
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params

from gateway.protocol.kept_fields import FIELDS, MARKS, Reference, references_of
from integrations.providers.given import Kept

_REQUESTS: Mapping[str, tuple[Any, ...]] = {
    "chat": (completion_create_params.CompletionCreateParamsNonStreaming,),
    "responses": (response_create_params.ResponseCreateParamsNonStreaming,),
    "messages": (
        message_create_params.MessageCreateParamsNonStreaming,
        beta_message_create_params.MessageCreateParamsNonStreaming,
        message_count_tokens_params.MessageCountTokensParams,
    ),
    "generate_content": (google.Content, google.Tool, google.GenerateContentConfig),
}
_LOOKS_LIKE_AN_ID = re.compile(
    r"(^|_)(ids?|uris?|container|conversation|cached_content|datastore|data_store|engine|corpus|corpora|store_names)$"
)
# What these name is in the request itself, at the client, or a public name.
_NO_OBJECTS: Mapping[str, str] = {
    **dict.fromkeys(("call_id", "tool_call_id", "tool_use_id", "tool_id", "caller_id"), "a call in the request"),
    "approval_request_id": "an item of the request",
    **dict.fromkeys(("tab_id", "download_id"), "the client's browser"),
    "user_id": "the client's own name of its user",
    "connector_id": "a service's public name; its token stands in the request",
    "download_uri": "Google's answer, which no request has",
    "uri": "Google's answer, which no request has",
}
# Of objects whose `id` is in the table, those whose entry names the field that holds them.
_OBJECTS = {
    "Audio": "audio.id",
    "BetaContainerParams": "container.id",
    "ContainerParams": "container.id",
    "ResponseConversationParamParam": "conversation.id",
    "ResponsePromptParam": "prompt.id",
    "VoiceID": "voice.id",
}
_ITEMS = {"ItemReference", "ResponseReasoningItemParam", "ImageGenerationCall"}
# Items and blocks that stand in the request whole: their id is a name for them.
_WHOLE = {
    *("AdditionalTools", "ApplyPatchCall", "ApplyPatchCallOutput", "CompactionTrigger", "ComputerCallOutput"),
    *("ComputerCallOutputAcknowledgedSafetyCheck", "FunctionCallOutput", "LocalShellCall", "LocalShellCallOutput"),
    *("McpApprovalRequest", "McpApprovalResponse", "McpCall", "McpListTools", "PendingSafetyCheck", "Program"),
    *("ProgramOutput", "ResponseCodeInterpreterToolCallParam", "ResponseCompactionItemParamParam"),
    *("ResponseComputerToolCallParam", "ResponseConfigurationUpdateItemParamParam", "ShellCall", "ShellCallOutput"),
    *("ResponseCustomToolCallOutputParam", "ResponseCustomToolCallParam", "ResponseFileSearchToolCallParam"),
    *("ResponseFunctionToolCallParam", "ResponseFunctionWebSearchParam", "ResponseOutputMessageParam"),
    *("ResponseToolSearchOutputItemParamParam", "ToolSearchCall", "ChatCompletionMessageCustomToolCallParam"),
    *("ChatCompletionMessageFunctionToolCallParam", "CodeExecutionResult", "ExecutableCode", "FunctionCall"),
    *("FunctionResponse", "ToolCall", "ToolResponse", "ServerToolUseBlock", "ServerToolUseBlockParam"),
    *("ToolUseBlock", "ToolUseBlockParam", "BetaMCPToolUseBlock", "BetaMCPToolUseBlockParam"),
    *("BetaServerToolUseBlock", "BetaServerToolUseBlockParam", "BetaToolUseBlock", "BetaToolUseBlockParam"),
}


def _fields(shape: Any) -> Mapping[str, Any] | None:
    """Returns the fields of a type of an SDK; None for a type that has none."""
    if typing_extensions.is_typeddict(shape):
        return typing_extensions.get_type_hints(shape)
    fields = getattr(shape, "model_fields", None) if isinstance(shape, type) else None
    return {name: field.annotation for name, field in fields.items()} if fields else None


def _ids(shape: Any, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Yields the fields within a type that look like ids, each with the name of its object's type."""
    if isinstance(shape, str | typing.ForwardRef) or repr(shape) in seen:
        return
    seen.add(repr(shape))
    fields = _fields(shape)
    if fields is None:
        for part in get_args(shape):
            yield from _ids(part, seen)
        return
    for name, inner in fields.items():
        if _LOOKS_LIKE_AN_ID.search(name):
            yield shape.__name__, name
        yield from _ids(inner, seen)


def _has_a_place(holder: str, name: str) -> bool:
    if name == "id":
        return holder in _ITEMS | _WHOLE or _OBJECTS.get(holder) in FIELDS
    in_an_object = any(known.endswith(f".{name}") for known in FIELDS)
    return name in FIELDS or name in _NO_OBJECTS or in_an_object


@pytest.mark.parametrize("surface", _REQUESTS)
def test_fields_of_sdk__that_look_like_ids__are_in_the_table(surface: str) -> None:
    seen: set[str] = set()
    found = {pair for shape in _REQUESTS[surface] for pair in _ids(shape, seen)}

    assert found, "the SDK has types of another form"
    assert sorted(pair for pair in found if not _has_a_place(*pair)) == []


@pytest.mark.parametrize("name", FIELDS)
def test_field__of_the_table__is_found_wherever_it_stands(name: str) -> None:
    holder, _, field = name.rpartition(".")
    value: Any = {field: "files/1"}
    body = _json({"x": {holder: [value]} if holder else [value]})

    found = references_of(body, "responses")

    assert [(one.kind, one.id) for one in found] == [(FIELDS[name], "files/1")]
    assert any(mark in body for mark in MARKS) or name == "prompt.id"


def test_lists__of_ids__are_all_found() -> None:
    body = _json({"tools": [{"vector_store_ids": ["vs_1", "vs_2", "vs_1", 3, ""]}]})

    assert references_of(body, "responses") == [
        Reference(Kept.STORE, one, "tools[0].vector_store_ids") for one in ("vs_1", "vs_2")
    ]


@pytest.mark.parametrize("body", [b"--form\r\nfile_id", b'{"file_id": ', b"[]", b'{"file_id": 1e999}', b'"file_id"'])
def test_body__that_names_nothing__has_no_references(body: bytes) -> None:
    assert references_of(body, "responses") == []


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
