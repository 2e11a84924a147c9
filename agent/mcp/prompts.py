"""The project's managed prompts as MCP prompts, from the snapshot that `GET /api/llm/prompts/{name}` uses.

Prompts without a version are not listed. MCP has only user and assistant messages: those of role system and developer
become a user's. `_meta` has the fetched prompt with its original roles.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import msgspec
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    GetPromptResult,
    ListPromptsResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

from agent.mcp.admission import Client
from core.api.authentication import require_scope
from core.errors import ApplicationError, ValidationError
from core.http.exception_handler import error_body, log_unexpected, translate
from gateway.pipeline.pin import split_name
from gateway.prompt_fetch.answer import prompt_answer
from gateway.prompt_fetch.query import read_named
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.prompts import ManagedPrompt
from gateway.worker.current import current_runtime
from prompts.selectors import PromptVersionRecord

logger = logging.getLogger("agent.mcp")

PAGE_PROMPTS = 100
ANSWER = "prompt-gateway/prompt"
"""The member of `_meta` that holds the answer of the fetch."""


@dataclass(frozen=True, slots=True)
class Question:
    name: str
    arguments: Mapping[str, str]
    user_id: str
    session_id: str


async def listed(client: Client, cursor: str | None) -> ListPromptsResult:
    """Returns a page of the prompts by name; `cursor` comes from the page before. Raises MCPError."""
    try:
        prompts = (await _snapshot(client)).prompts
        names = sorted(name for name, prompt in prompts.items() if prompt.active is not None)
        start = bisect.bisect_right(names, _decoded(cursor)) if cursor else 0
    except Exception as error:
        _refuse(error, "prompts/list")
    page = names[start : start + PAGE_PROMPTS]
    is_last = start + PAGE_PROMPTS >= len(names)
    return ListPromptsResult(
        prompts=[_described(prompts[name]) for name in page], next_cursor=None if is_last else _encoded(page[-1])
    )


async def fetched(client: Client, question: Question, request_id: str) -> GetPromptResult:
    """`request_id` decides the arm of a rollout if neither user nor session does. Raises MCPError."""
    try:
        snapshot = await _snapshot(client)
        name, reference = split_name(snapshot.prompts, question.name)
        query = read_named(
            name, reference, question.arguments, user_id=question.user_id, session_id=question.session_id
        )
        answer = msgspec.json.decode(
            (await prompt_answer(current_runtime().snapshots, snapshot, query, request_id)).body
        )
    except Exception as error:
        _refuse(error, request_id)
    logger.info(
        "mcp.prompt_fetched project_id=%s actor=%s config_id=%s version=%s request_id=%s",
        client.project_id,
        client.actor,
        answer["config_id"],
        answer["version_number"],
        request_id,
    )
    messages = [
        PromptMessage(role=_role(message["role"]), content=TextContent(type="text", text=message["content"]))
        for message in answer["messages"]
    ]
    return GetPromptResult(description=f"Version {answer['version_number']}", messages=messages, _meta={ANSWER: answer})


async def _snapshot(client: Client) -> ProjectSnapshot:
    require_scope(client.scopes, "getPrompt")
    snapshots = current_runtime().snapshots
    snapshot = await snapshots.project(client.project_id)
    snapshots.note_use(client.project_id)
    return snapshot


def _described(prompt: ManagedPrompt) -> Prompt:
    number = prompt.active.number if prompt.active is not None else 0
    labels = ", ".join(f"{prompt.name}@{label}" for label in sorted(prompt.labels))
    return Prompt(
        name=prompt.name,
        title=prompt.name,
        description=f"Version {number} is active." + (f" By label: {labels}." if labels else ""),
        arguments=list(_arguments(prompt)),
    )


def _arguments(prompt: ManagedPrompt) -> Iterator[PromptArgument]:
    versions = _served(prompt)
    declared = {variable.name: variable for version in versions for variable in version.template.variables}
    required = {variable.name for version in versions for variable in version.template.variables if variable.required}
    for name, variable in declared.items():
        is_text = variable.type == "string"
        yield PromptArgument(
            name=name, description=None if is_text else f"JSON: {variable.type}", required=name in required
        )
    for name in sorted({name for version in versions for name in version.template.names} - declared.keys()):
        yield PromptArgument(name=name, required=False)


def _served(prompt: ManagedPrompt) -> list[PromptVersionRecord]:
    rollout = prompt.rollout
    versions = [prompt.active] if rollout is None or rollout.paused else [rollout.baseline, rollout.target]
    return [version for version in versions if version is not None]


def _role(role: str) -> Literal["user", "assistant"]:
    return "assistant" if role == "assistant" else "user"


def _encoded(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _decoded(cursor: str) -> str:
    try:
        return base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError):
        problem = "Is none that this server gave."
        raise ValidationError(f"cursor: {problem}", details={"cursor": [problem]}) from None


def _refuse(error: Exception, reference: str) -> NoReturn:
    known = translate(error)
    if known is None:
        log_unexpected(error, reference)
        known = ApplicationError("The service failed unexpectedly.")
    body: dict[str, Any] = error_body(known)["error"]
    code = INVALID_PARAMS if known.status < 500 else INTERNAL_ERROR
    raise MCPError(code, str(body["message"]), body) from error
