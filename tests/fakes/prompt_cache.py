"""The arithmetic of Anthropic's prompt cache (https://platform.claude.com/docs/en/build-with-claude/prompt-caching).

A prompt is its tools, its system text and its messages, in this order, as a list of blocks. A marked block is a
breakpoint: the prefix up to it is kept. A breakpoint is looked up at its own place and at the 20 blocks before it; the
longest prefix found is read, what lies between it and the last breakpoint is written, and the rest is fresh input.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tests.fakes.scripted import Step
from tests.fakes.upstream import Connection, Received

LOOKBACK_BLOCKS = 20
MAX_BREAKPOINTS = 4
_CHARACTERS_OF_A_TOKEN = 4
_ANSWER_TOKENS = 50

Json = dict[str, Any]


class RefusedError(Exception):
    """The vendor's 400; the message is the vendor's."""


@dataclass(frozen=True)
class Counts:
    fresh: int
    read: int
    written: int


@dataclass
class PromptCache:
    min_tokens: int = 1024
    bodies: list[Json] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    _kept: set[str] = field(default_factory=set)

    def count(self, body: Json) -> Counts:
        """Also keeps what the request marks. Raises RefusedError."""
        prefixes: list[tuple[str, int, bool]] = []
        digest, tokens = sha256(body["model"].encode()), 0
        for role, block in _blocks(body):
            plain = {name: value for name, value in block.items() if name != "cache_control"}
            text = json.dumps([role, plain], sort_keys=True)
            digest.update(text.encode())
            tokens += len(text) // _CHARACTERS_OF_A_TOKEN
            prefixes.append((digest.hexdigest(), tokens, "cache_control" in block))
        breakpoints = [place for place, (_, _, marked) in enumerate(prefixes) if marked]
        if len(breakpoints) > MAX_BREAKPOINTS:
            raise RefusedError("A maximum of 4 blocks with cache_control may be provided.")
        looked_up = {place for end in breakpoints for place in range(max(0, end - LOOKBACK_BLOCKS), end + 1)}
        read = max((prefixes[place][1] for place in looked_up if prefixes[place][0] in self._kept), default=0)
        kept = [place for place in breakpoints if prefixes[place][1] >= self.min_tokens]
        self._kept.update(prefixes[place][0] for place in kept)
        end = max((prefixes[place][1] for place in kept), default=0)
        found = Counts(tokens - max(read, end), read, max(end - read, 0))
        self.bodies.append(body)
        self.counts.append(found)
        return found

    @property
    def step(self) -> Step:
        async def answer(request: Received, connection: Connection) -> None:
            body = json.loads(request.body)
            try:
                status, content = 200, self._message(body)
            except RefusedError as error:
                refused = {"type": "invalid_request_error", "message": str(error)}
                status, content = 400, {"type": "error", "error": refused}
            await connection.send_whole(status, json.dumps(content).encode(), {"content-type": "application/json"})

        return answer

    def _message(self, body: Json) -> Json:
        counts = self.count(body)
        return {
            "id": f"msg_{len(self.bodies)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "text", "text": f"Answer {len(self.bodies)}"}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": counts.fresh,
                "cache_read_input_tokens": counts.read,
                "cache_creation_input_tokens": counts.written,
                "output_tokens": _ANSWER_TOKENS,
            },
        }


def _blocks(body: Json) -> Iterator[tuple[str, Json]]:
    for tool in body.get("tools") or ():
        yield "tools", tool
    for block in _listed(body.get("system") or []):
        yield "system", block
    for message in body["messages"]:
        for block in _listed(message["content"]):
            yield message["role"], block


def _listed(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
