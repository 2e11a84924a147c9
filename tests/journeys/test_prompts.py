"""Plays prompts of the shared traffic through the SDK against the sandbox: no error, and a row for each request."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.journeys.rows import Rows, rows_when
from tests.journeys.traffic import new_project
from tests.live.service import LiveService
from tests.night import cases
from tests.recordings import shared_file
from tests.services import START_SECONDS

pytestmark = [pytest.mark.live, pytest.mark.recordings]

CONCURRENCY = 16
OPTIONS = ("tools", "tool_choice", "response_format", "stop", "temperature", "max_tokens", "top_p", "n", "stream")
OWN: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": "Why is the sky blue?"}]},
    {"messages": [{"role": "user", "content": "Über Grüße 🌊"}], "stream": True},
    {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}], "n": 2},
]


def prompts() -> list[dict[str, Any]]:
    """Returns by day every sixth prompt of the shared traffic, or the repository's few where the checkout has none."""
    file: Path | None = shared_file("traffic", "prompts.jsonl")
    if file is None:
        return OWN
    every = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return list(cases(every, by_day=every[::6]))


async def ask(client: openai.AsyncOpenAI, messages: list[Any], options: dict[str, Any]) -> str:
    answer: Any = await client.chat.completions.create(model="sandbox/echo", messages=messages, **options)
    if not options.get("stream"):
        assert answer.usage.total_tokens > 0
        return answer.choices[0].message.content or ""
    chunks = [chunk async for chunk in answer]
    assert chunks[-1].usage.total_tokens > 0
    assert all(chunk.usage is None for chunk in chunks[:-1])
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


async def play(client: openai.AsyncOpenAI, prompt: dict[str, Any], gate: asyncio.Semaphore) -> int:
    options = {name: prompt[name] for name in OPTIONS if prompt.get(name) is not None}
    messages = list(prompt["messages"])
    async with gate:
        text = await ask(client, messages, options)
        turns: list[str] = prompt.get("next_user_turns") or []
        for turn in turns:
            messages += [{"role": "assistant", "content": text or "…"}, {"role": "user", "content": turn}]
            text = await ask(client, messages, options)
    return 1 + len(turns)


def rows_of(service: LiveService, project_id: str, count: int) -> Rows:
    return rows_when(
        service, project_id, lambda rows: rows.total >= count and rows.consistent, what=f"more rows of {count}"
    )


async def test_prompts__through_the_sdk__no_error_and_a_row_each(journey_service: LiveService) -> None:
    project = await asyncio.to_thread(new_project, journey_service, "prompts")
    gate = asyncio.Semaphore(CONCURRENCY)
    base_url = f"{journey_service.base_url}/api/gateway/v1"
    # Every request belongs to a session, so that the session rollup counts all of them.
    options: dict[str, Any] = {
        "max_retries": 0,
        "timeout": START_SECONDS,
        "default_headers": {"x-svc-session-id": "prompts"},
    }
    async with openai.AsyncOpenAI(base_url=base_url, api_key=project.key, **options) as client:
        counts = await asyncio.gather(*(play(client, prompt, gate) for prompt in prompts()))

    rows = await asyncio.to_thread(rows_of, journey_service, project.id, sum(counts))
    assert rows.total == sum(counts)
    assert set(rows.outcomes.values()) == {"success"}
