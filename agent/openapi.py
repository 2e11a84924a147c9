"""The chat and the MCP server in the OpenAPI document, written by hand because no Django view serves them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired
from uuid import UUID

from msgspec import Meta
from typing_extensions import TypedDict

from agent.turn.events import AnyEvent
from agent.worker.limits import MESSAGE_CHARACTERS, PAGE_CHARACTERS, PAGE_DATA_BYTES
from core.openapi.document import KEY_SECURITY, MANAGEMENT_SECURITY, REQUEST_ID
from core.openapi.failures import ErrorBody
from core.openapi.handwritten import failures, optional_parameter
from core.openapi.shapes import reference
from gateway.protocol.headers import PREFIX

_CHAT, _MCP = "/api/agent/chat", "/api/agent/mcp"
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


_MCP_DESCRIPTION = """\
JSON-RPC over streamable HTTP, one message a call, without sessions: `tools/list` and `prompts/list` say what there is.
A key of scope `manage` gets tools and prompts, one of `prompts:read` or `gateway` the prompts. A failure of a tool is a
result with `isError`."""
_OTHERWISE_MCP = {
    **_OTHERWISE,
    400: "It is no message of the protocol, which a JSON-RPC error says; or something else in the request is wrong.",
    403: "The key has none of the scopes, `agent_disabled`: the project has switched its agent off, or"
    " `origin_not_allowed`: a page of another host sent it.",
    404: "Another method than those that the protocol has.",
}
_MCP_STATUSES = (400, 401, 403, 404, 405, 406, 408, 413, 415, 500, 503)


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


class McpMessage(TypedDict):
    """A request, or without `id` a notification."""

    jsonrpc: Literal["2.0"]
    method: str
    id: NotRequired[str | int]
    params: NotRequired[dict[str, Any]]


class McpError(TypedDict):
    code: int
    message: str
    data: NotRequired[Any]


class McpAnswer(TypedDict):
    """`result`, or `error`."""

    jsonrpc: Literal["2.0"]
    id: NotRequired[str | int | None]
    result: NotRequired[dict[str, Any]]
    error: NotRequired[McpError]


def add_agent(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    result["paths"][_CHAT] = {"post": _chat()}
    result["paths"][_MCP] = {"post": _mcp()}
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
            **failures(_STATUSES, _OTHERWISE),
        },
    }


def _mcp() -> dict[str, Any]:
    answer = {
        "description": "The answer to a request.",
        "headers": REQUEST_ID,
        "content": _content(reference(McpAnswer)),
    }
    session = "The session for which a rollout decides the version of a prompt."
    return {
        "operationId": "callAgentTools",
        "summary": "Send a message of the Model Context Protocol",
        "description": _MCP_DESCRIPTION,
        "externalDocs": {
            "description": "The messages of the protocol.",
            "url": "https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http",
        },
        "tags": ["agent"],
        "security": KEY_SECURITY,
        "parameters": [
            optional_parameter("Mcp-Protocol-Version", "The version that the client speaks."),
            optional_parameter(f"{PREFIX}user-id", "The user for whom a rollout decides the version of a prompt."),
            optional_parameter(f"{PREFIX}session-id", session),
        ],
        "requestBody": {"required": True, "content": _content(reference(McpMessage))},
        "responses": {
            "200": answer,
            "202": {"description": "A notification was taken; there is no answer to it.", "headers": REQUEST_ID},
            **failures(_MCP_STATUSES, _OTHERWISE_MCP, (ErrorBody, McpAnswer)),
        },
    }


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {_JSON: {"schema": schema}}


def _stream() -> dict[str, Any]:
    data = {"type": "string", "contentMediaType": _JSON, "contentSchema": reference(AnyEvent)}
    event = {"type": "object", "description": "One event.", "properties": {"data": data}, "required": ["data"]}
    return {"schema": event, "x-event-schema": reference(AnyEvent)}
