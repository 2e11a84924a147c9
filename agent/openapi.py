"""The chat in the OpenAPI document, which is written by hand because no Django view serves it."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired
from uuid import UUID

from msgspec import Meta
from typing_extensions import TypedDict

from agent.events import AnyEvent
from agent.limits import MESSAGE_CHARACTERS, PAGE_CHARACTERS, PAGE_DATA_BYTES
from core.openapi.document import MANAGEMENT_SECURITY, REQUEST_ID
from core.openapi.failures import ERRORS, ErrorBody
from core.openapi.shapes import reference

_CHAT = "/api/agent/chat"
_JSON, _STREAM = "application/json", "text/event-stream"

_DESCRIPTION = """\
The agent answers with its tools, which read the project and change nothing. It may use those that `agent_scopes` of the
settings allow, its model is `agent_model`, else the first usable one of `preferred_models`.

Events are `data: {"type": …}` lines: `conversation_created` first where a conversation begins, then `text_delta`,
`tool_start` and `tool_result` as they happen, `done` or `error` as the last. Lines that begin with `:` keep the
connection. Who hangs up stops the agent; what it has said is kept."""
_OTHERWISE = {
    403: "`agent_disabled`: the project has switched its agent off. Else as of every management call.",
    404: "There is no such conversation in this project.",
    405: "`method_not_allowed`.",
    408: "`request_timeout`: the body did not arrive in time.",
    409: "`conversation_busy`: the agent is answering in this conversation.",
}
_STATUSES = (400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 500, 503)


class PageContext(TypedDict):
    page: NotRequired[Annotated[str, Meta(max_length=PAGE_CHARACTERS, description="Which page the user looks at.")]]
    data: NotRequired[
        Annotated[dict[str, Any], Meta(description=f"What it shows, at most {PAGE_DATA_BYTES} bytes of JSON.")]
    ]


class ChatRequest(TypedDict):
    message: Annotated[str, Meta(min_length=1, max_length=MESSAGE_CHARACTERS, description="What the user says.")]
    conversation_id: NotRequired[Annotated[UUID | None, Meta(description="Left out: a new conversation begins.")]]
    page_context: NotRequired[PageContext | None]
    project_id: NotRequired[Annotated[UUID, Meta(description="The project of the header.")]]


def add_agent(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """The OpenAPI generator's hook that adds the agent's paths."""
    result["paths"][_CHAT] = {"post": _chat()}
    return result


def _chat() -> dict[str, Any]:
    return {
        "operationId": "chatWithAgent",
        "summary": "Ask the agent",
        "description": _DESCRIPTION,
        "tags": ["agent"],
        "security": MANAGEMENT_SECURITY,
        "parameters": [],
        "requestBody": {"required": True, "content": {_JSON: {"schema": reference(ChatRequest)}}},
        "responses": {
            "200": {"description": "The agent's events.", "headers": REQUEST_ID, "content": {_STREAM: _stream()}},
            **{str(status): _failure(status) for status in _STATUSES},
        },
    }


def _stream() -> dict[str, Any]:
    """Returns the description of a stream in the form of tools that check streams: the schema is that of one event."""
    data = {"type": "string", "contentMediaType": _JSON, "contentSchema": reference(AnyEvent)}
    event = {"type": "object", "description": "One event.", "properties": {"data": data}, "required": ["data"]}
    return {"schema": event, "x-event-schema": reference(AnyEvent)}


def _failure(status: int) -> dict[str, Any]:
    return {
        "description": _OTHERWISE.get(status) or ERRORS[status],
        "headers": REQUEST_ID,
        "content": {_JSON: {"schema": reference(ErrorBody)}},
    }
