from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from openai import AsyncOpenAI, OpenAIError

from gateway.demo.conversations import DemoConversation

_MAX_TOOL_ROUNDS = 5


@dataclass(slots=True)
class Played:
    """`failure` is empty if every request was answered."""

    name: str
    session_id: str
    requests: int = 0
    tool_calls: int = 0
    failure: str = ""


@dataclass(slots=True)
class _Answer:
    content: str = ""
    tool_calls: dict[int, dict[str, Any]] = field(default_factory=dict)

    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.content or None}
        if self.tool_calls:
            return {**message, "tool_calls": [self.tool_calls[index] for index in sorted(self.tool_calls)]}
        return {**message, "content": self.content}


async def play_all(
    client: AsyncOpenAI,
    conversations: Sequence[DemoConversation],
    *,
    model: str,
    session_prefix: str,
    concurrency: int,
    done: Callable[[Played], None],
) -> list[Played]:
    room = asyncio.Semaphore(concurrency)

    async def play(number: int, conversation: DemoConversation) -> Played:
        async with room:
            played = Played(conversation.name, f"{session_prefix}-{number:04d}")
            try:
                await _play(client, conversation, model, played)
            except OpenAIError as error:
                played.failure = f"{type(error).__name__}: {error}"
            done(played)
            return played

    return list(await asyncio.gather(*(play(*pair) for pair in enumerate(conversations, 1))))


async def _play(client: AsyncOpenAI, conversation: DemoConversation, model: str, played: Played) -> None:
    messages = list(conversation.messages)
    for turn in (None, *conversation.next_user_turns):
        if turn is not None:
            messages.append({"role": "user", "content": turn})
        options = dict(conversation.options)
        for _ in range(_MAX_TOOL_ROUNDS):
            answer = await _ask(client, conversation.stream, played, model=model, messages=messages, **options)
            messages.append(answer.message())
            if not answer.tool_calls:
                break
            played.tool_calls += len(answer.tool_calls)
            messages.extend(_result(call) for call in answer.message()["tool_calls"])
            # A tool choice that forces a call would force one in every round.
            options.pop("tool_choice", None)


async def _ask(client: AsyncOpenAI, stream: bool, played: Played, **request: Any) -> _Answer:
    played.requests += 1
    headers = {"x-svc-session-id": played.session_id, "x-svc-user-id": "demo"}
    if stream:
        return await _collect(await client.chat.completions.create(stream=True, extra_headers=headers, **request))
    completion = await client.chat.completions.create(extra_headers=headers, **request)
    message = completion.choices[0].message
    calls = {index: call.model_dump(exclude_none=True) for index, call in enumerate(message.tool_calls or [])}
    return _Answer(message.content or "", calls)


async def _collect(stream: Any) -> _Answer:
    answer = _Answer()
    async for chunk in stream:
        for choice in chunk.choices:
            if choice.index == 0:
                answer.content += choice.delta.content or ""
                for piece in choice.delta.tool_calls or []:
                    _add_piece(answer, piece)
    return answer


def _add_piece(answer: _Answer, piece: Any) -> None:
    empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
    call = answer.tool_calls.setdefault(piece.index, empty)
    call["id"] += piece.id or ""
    call["function"]["name"] += piece.function.name or ""
    call["function"]["arguments"] += piece.function.arguments or ""


def _result(call: dict[str, Any]) -> dict[str, Any]:
    """A demo tool returns its own arguments, so that the conversation needs no outside service."""
    called = call.get("function") or call.get("custom") or {}
    content = {"tool": called.get("name", ""), "status": "ok", "received": called.get("arguments", "")}
    return {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(content)}
