"""The vendors of the matrix: each is the strict fake of its dialect, with a scripted model behind it.

A request that the vendor would refuse gets its refusal, so a cell fails for what would fail in reality.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.dialects.client_tools import addressed
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import answer_with, read_request, script_path
from tests.fakes.dialects.story import FakeDialect, ReadRequest, Story
from tests.fakes.scripted import Step
from tests.fakes.upstream import Connection, Received

_AWAY = b'{"error": {"message": "Overloaded", "type": "overloaded_error", "code": null, "param": null}}'
Think = Callable[[ReadRequest], Story]


@dataclass(frozen=True)
class Vendor:
    """`counts` are its answers to requests for a prompt's token count, by the end of the path."""

    title: str
    provider: str
    model: str
    counts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def fake(self) -> FakeDialect:
        return FAKES[self.provider]

    @property
    def price(self) -> dict[str, Any]:
        """In US dollars for a million tokens."""
        return {"provider": self.provider, "model": self.model.rpartition("/")[2], "input": "2", "output": "10"}

    def step(self, think: Think, *, breaks: bool = False) -> Step:
        """Answers each request with what `think` says, unless the vendor refuses it. A vendor that `breaks` is away
        from the first tool call on."""
        has_called = False

        async def step(received: Received, connection: Connection) -> None:
            path = script_path(received.path).partition("?")[0]
            count = next((count for end, count in self.counts.items() if path.endswith(end)), None)
            if count is not None:
                await connection.send_whole(200, json.dumps(count).encode(), {"content-type": "application/json"})
                return
            nonlocal has_called
            if breaks and has_called:
                await connection.send_whole(503, _AWAY, {"content-type": "application/json"})
                return
            story = self._story(received, path, think)
            has_called = bool(story.calls)
            await answer_with(self.fake, story)(received, connection)

        return step

    def _story(self, received: Received, path: str, think: Think) -> Story:
        try:
            story = think(read_request(self.fake, received))
        except AssertionError:
            # The answer is the vendor's refusal in any case.
            return Story()
        return addressed(story, received.body) if path.endswith("/responses") else story


VENDORS = (
    Vendor("OpenAI", "openai", "gpt-5.5"),
    Vendor("Anthropic", "anthropic", "claude-sonnet-5", {"/messages/count_tokens": {"input_tokens": 42}}),
    Vendor("Gemini", "google", "gemini-3-pro", {":countTokens": {"totalTokens": 42}}),
    Vendor("vLLM", "vllm", "vllm/qwen3-coder"),
)
OPENAI, ANTHROPIC = VENDORS[:2]
KIMI = Vendor("Kimi", "moonshot", "moonshot/kimi-k2.6")
DEEPSEEK = Vendor("DeepSeek", "deepseek", "deepseek/deepseek-v4-pro")
MIMO = Vendor("MiMo", "xiaomi_mimo", "xiaomi_mimo/mimo-v2.5")
THINKERS = (KIMI, DEEPSEEK)
"""Vendors that want the reasoning of each call back, and are not in the matrix."""
