"""Describes a fake provider's answer (a story) and the request as it was read, independent of any dialect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from integrations.providers.base import Credentials
from integrations.providers.usage import Usage

Finish = Literal["stop", "length", "tool_calls", "content_filter"]


@dataclass(frozen=True)
class Call:
    """A tool call. `arguments` is the object, not its text. `id` is empty for a provider that gives its calls none."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Story:
    """The content of an answer. `usage` counts as `Usage` does: `prompt_tokens` include cached and written tokens,
    `completion_tokens` reasoning. `pieces` is the number of deltas into which a stream cuts texts and arguments. `id`
    is the part of the answer's id that differs between answers."""

    text: str = ""
    reasoning: str = ""
    signature: str = ""
    calls: tuple[Call, ...] = ()
    finish: Finish = "stop"
    usage: Usage = field(default_factory=lambda: Usage(prompt_tokens=21, completion_tokens=9))
    model: str = "fake-1"
    pieces: int = 3
    id: str = "fake"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Streamed:
    headers: Mapping[str, str]
    events: tuple[bytes, ...]


@dataclass(frozen=True)
class ReadRequest:
    """A request as the provider read it, in terms that one test uses for all dialects.

    `turns` are ("user" | "assistant", text) in order, tool calls and results left out; `images` and `documents` are
    (media type or "url", bytes or address); `results` are (call id or function name, text); `calls` are those of the
    history. `schema` is the JSON schema that the answer has to follow; `tool_choice` is `none`, `auto`, `required`,
    `function:<name>`, or empty when left out. `signatures` are the reasoning signatures that came back.
    """

    model: str = ""
    stream: bool = False
    system: str = ""
    turns: tuple[tuple[str, str], ...] = ()
    images: tuple[tuple[str, bytes | str], ...] = ()
    documents: tuple[tuple[str, bytes | str], ...] = ()
    tools: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    results: tuple[tuple[str, str], ...] = ()
    tool_choice: str = ""
    schema: Mapping[str, Any] | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    signatures: tuple[str, ...] = ()
    secret: str = ""


@dataclass(frozen=True)
class Can:
    """The features of a dialect; the suite expects a documented refusal or warning for each that is missing."""

    images: bool = True
    documents: bool = True
    tools: bool = True
    parallel_tools: bool = True
    schema: bool = True
    reasoning: bool = True
    signatures: bool = False  # The dialect signs reasoning, which has to come back.
    routes: bool = False  # A router accepts the signed reasoning of every vendor.
    cached_usage: bool = True
    stream_errors: bool = True  # An error event can stand inside a stream of status 200.


class FakeDialect(Protocol):
    """One provider's wire format, as pure functions; `tests/fakes/dialects/server.py` serves it."""

    provider: str
    can: Can

    def credentials(self, base_url: str) -> Credentials: ...

    def whole(self, story: Story) -> Reply: ...

    def stream(self, story: Story) -> Streamed: ...

    def failure(self, status: int, message: str, *, retry_after: int | None = None) -> Reply: ...

    def stream_failure(self, story: Story, message: str) -> Streamed:
        """Returns the story's events without its end, then the dialect's error event, which is alone if the story is
        empty."""
        ...

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> ReadRequest:
        """Raises AssertionError if the provider would refuse the request (header, path, shape)."""
        ...
