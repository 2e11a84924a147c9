"""The agent's loop: the model gets the question, calls tools, and gets their results, until it answers.

docs/agent.md#what-it-does describes the loop. Every message is stored as soon as it is complete, so that an interrupted
chat can be continued.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import InterfaceError

from agent.errors import RunLostError
from agent.models import Message, MessageState, Role
from agent.services import NewMessage, Run, add_message
from agent.tools.base import Tool, ToolContext, ToolOutcome
from agent.tools.registry import offered
from agent.tools.scopes import Granted, granted, require_agent
from agent.turn.asking import ModelCall, ModelFailedError, caller
from agent.turn.calling import logged_name, outcome_of, refused
from agent.turn.events import AnyEvent, ConversationCreated, Done, ErrorEvent, TextDelta, ToolResult, ToolStart
from agent.turn.fence import Fence
from agent.turn.holding import HeldLease
from agent.turn.instructions import Situation, instructions
from agent.turn.masking import mask_rows, masked_result, masked_text, wants_masks
from agent.turn.transcript import transcript
from agent.worker.leases import release_lease
from agent.worker.limits import (
    CALLS_PER_STEP,
    CONTEXT_CHARACTERS,
    OUTPUT_CHARACTERS,
    PARALLEL_CALLS,
    RUN_TOKENS,
    STEPS,
)
from agent.worker.threads import in_thread, to_the_end
from core.api.authentication import ProjectAccess, rights_now
from core.http.exception_handler import log_unexpected, translate
from core.http.tracebacks import class_and_place
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot

logger = logging.getLogger("agent.chat")

Emit = Callable[[AnyEvent], Awaitable[None]]

_LOST = "The conversation was deleted, or is going on elsewhere."


@dataclass(frozen=True, slots=True)
class Chat:
    """`rows` are the conversation's messages; the last is the user's message to answer."""

    run: Run
    rows: Sequence[Message]
    project: str
    model: str
    access: ProjectAccess
    now: datetime


@dataclass(slots=True)
class _Used:
    tokens: int = 0
    characters: int = 0


@dataclass(slots=True)
class ChatLoop:
    runtime: Runtime
    chat: Chat
    emit: Emit
    _rows: list[Message] = field(init=False)
    _fence: Fence = field(default_factory=Fence)
    _used: _Used = field(default_factory=_Used)
    _model_call: ModelCall | None = None
    _released: bool = False
    _rows_are_masked: bool = False

    def __post_init__(self) -> None:
        self._rows = list(self.chat.rows)

    async def run(self) -> None:
        """Ends with `done` or `error`. If cancelled, it stores the partial answer and sends nothing."""
        started = time.monotonic()
        outcome = "cancelled"
        try:
            if self.chat.run.is_new:
                await self.emit(ConversationCreated(self.chat.run.conversation_id))
            problem = await self._answered()
            outcome = "failed" if problem else "done"
            # The lease is released before the last event, because the client may continue at once.
            await self._release()
            await self.emit(ErrorEvent(problem) if problem else Done())
        except asyncio.CancelledError:
            await self._keep_rest(MessageState.CANCELLED, "")
            raise
        finally:
            await self._release()
            logger.info(
                "chat.ended conversation_id=%s outcome=%s steps=%d tokens=%d seconds=%.1f",
                self.chat.run.conversation_id,
                outcome,
                sum(row.role == Role.ASSISTANT for row in self._rows[len(self.chat.rows) :]),
                self._used.tokens,
                time.monotonic() - started,
            )

    async def _release(self) -> None:
        if self._released:
            return
        self._released = True
        try:
            await to_the_end(release_lease, self.chat.run.conversation_id, self.chat.run.run_id)
        except (DatabaseError, InterfaceError):
            logger.warning("lease.not_released conversation_id=%s", self.chat.run.conversation_id)

    async def _answered(self) -> str:
        try:
            async with asyncio.timeout(settings.AGENT_RUN_SECONDS), HeldLease(self.chat.run):
                await self._converse()
        except TimeoutError:
            problem = f"The agent was stopped: it took longer than {settings.AGENT_RUN_SECONDS:g} seconds."
        except RunLostError:
            return _LOST
        except ModelFailedError as error:
            problem = str(error)
        except Exception as error:
            problem = self._error_text(error)
        else:
            return ""
        await self._keep_rest(MessageState.FAILED, problem)
        return problem

    def _error_text(self, error: Exception) -> str:
        known = translate(error)
        if known is not None:
            return known.message
        log_unexpected(error, f"conversation:{self.chat.run.conversation_id}")
        return "The agent failed; the failure is logged."

    async def _converse(self) -> None:
        for step in range(STEPS + 1):
            closing = step == STEPS or self._used.tokens > RUN_TOKENS
            calls = await self._ask(closing=closing)
            if not calls or closing:
                return
            await self._call_tools(calls)

    async def _ask(self, *, closing: bool) -> list[dict[str, Any]]:
        allowed = await self._granted()
        snapshot = await self._masked()
        body = self._body(allowed, closing=closing)
        self._model_call = model_call = ModelCall(
            self.runtime,
            snapshot,
            caller(
                actor=self.chat.access.actor,
                conversation_id=self.chat.run.conversation_id,
                typed=self._typed(body["messages"]),
            ),
            body,
            settings.AGENT_STEP_SECONDS,
        )
        async with aclosing(model_call.texts(OUTPUT_CHARACTERS - self._used.characters)) as texts:
            async for text in texts:
                await self.emit(TextDelta(text))
        answer, calls = model_call.answer, model_call.answer.calls
        self._used.tokens += answer.total_tokens
        self._used.characters += answer.size
        if closing:
            if calls and not answer.text:
                raise ModelFailedError("The model still wanted to call tools when it had to answer.")
            calls = []
        await self._keep(
            NewMessage(
                Role.ASSISTANT,
                content=answer.text,
                tool_calls=calls,
                reasoning=answer.reasoning or None,
                request_id=model_call.request_id,
            )
        )
        self._model_call = None
        return calls

    async def _masked(self) -> ProjectSnapshot:
        snapshot = await self.runtime.snapshots.project(self.chat.run.project_id)
        if not self._rows_are_masked and wants_masks(snapshot.settings.guardrails):
            await in_thread(mask_rows, self._rows)
            # The project's name may hold personal data too, and the instructions contain it.
            self.chat = replace(self.chat, project=masked_text(self.chat.project))
            self._rows_are_masked = True
        return snapshot

    def _typed(self, messages: list[dict[str, Any]]) -> list[str]:
        typed = [row.content for row in self._rows if row.role == Role.USER]
        shown = sum(message["role"] == "user" for message in messages)
        return typed[-shown:] if shown else []

    def _body(self, allowed: Granted, *, closing: bool) -> dict[str, Any]:
        situation = Situation(self.chat.project, str(self.chat.run.project_id), allowed.scopes, self.chat.now)
        system = instructions(situation, self._fence, closing=closing)
        tools = [_described(tool) for tool in offered(allowed)]
        messages = transcript(self._rows, self._fence, CONTEXT_CHARACTERS, with_calls=bool(tools))
        body: dict[str, Any] = {
            "model": self.chat.model,
            "messages": [{"role": "system", "content": system}, *messages],
        }
        if tools:
            body["tools"] = tools
            if closing:
                # The tools stay in the request: some providers refuse a history of calls without them.
                body["tool_choice"] = "none"
        return body

    async def _granted(self) -> Granted:
        """Checked before every step: a scope withdrawn during a chat ends at once."""
        return await in_thread(_granted_now, self.chat.access)

    async def _call_tools(self, calls: list[dict[str, Any]]) -> None:
        context = ToolContext(self.chat.run.project_id, await self._granted(), self.chat.now)
        masks = wants_masks((await self._masked()).settings.guardrails)
        for made in calls:
            await self.emit(ToolStart(made["id"], made["function"]["name"]))
        room = asyncio.Semaphore(PARALLEL_CALLS)
        tasks = [
            asyncio.create_task(_result(context, made, room if place < CALLS_PER_STEP else None, masks=masks))
            for place, made in enumerate(calls)
        ]
        try:
            for task in asyncio.as_completed(tasks):
                await self._store_result(*await task)
        finally:
            for one in tasks:
                one.cancel()

    async def _store_result(self, made: dict[str, Any], outcome: ToolOutcome, seconds: float) -> None:
        name = made["function"]["name"]
        message = NewMessage(
            Role.TOOL, content=outcome.content, tool_call_id=made["id"], tool_name=name, is_error=outcome.is_error
        )
        await self._keep(message)
        logger.info(
            "tool.called conversation_id=%s tool=%s is_error=%s seconds=%.2f",
            self.chat.run.conversation_id,
            logged_name(name),
            outcome.is_error,
            seconds,
        )
        await self.emit(ToolResult(made["id"], outcome.content))

    async def _keep(self, message: NewMessage) -> None:
        self._rows.append(await to_the_end(add_message, self.chat.run, message))

    async def _keep_rest(self, state: MessageState, problem: str) -> None:
        """Stores the part of an answer before an interruption, without its calls, which may be incomplete."""
        model_call, self._model_call = self._model_call, None
        text = model_call.answer.text if model_call is not None else ""
        if not text and not problem:
            return
        message = NewMessage(
            Role.ASSISTANT,
            content=text,
            state=state,
            error=problem,
            request_id=model_call.request_id if model_call is not None else "",
        )
        try:
            await self._keep(message)
        except RunLostError:
            logger.info("chat.lost conversation_id=%s", self.chat.run.conversation_id)
        except Exception as error:
            logger.error(
                "message.lost conversation_id=%s error=%s", self.chat.run.conversation_id, class_and_place(error)
            )


def _granted_now(access: ProjectAccess) -> Granted:
    return granted(require_agent(access.project_id), rights_now(access))


@cache
def _described(tool: Tool) -> dict[str, Any]:
    described = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": described}


async def _result(
    context: ToolContext, made: dict[str, Any], room: asyncio.Semaphore | None, *, masks: bool = False
) -> tuple[dict[str, Any], ToolOutcome, float]:
    """The last value is the duration in seconds. Without `room` the call is refused as one too many."""
    if room is None:
        message = f"At most {CALLS_PER_STEP} tools can be called at once; ask again for the others."
        return made, refused("too_many_calls", message), 0.0
    async with room:
        started = time.monotonic()
        outcome = await outcome_of(context, made["function"]["name"], made["function"]["arguments"])
        if masks:
            outcome = replace(outcome, content=await in_thread(masked_result, outcome.content))
        return made, outcome, time.monotonic() - started
