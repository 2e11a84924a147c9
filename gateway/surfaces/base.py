"""The interface between the pipeline and a client protocol: pure functions over bytes (docs/architecture.md#surfaces).

The pipeline knows one form: OpenAI's chat completions (docs/chat-completions.md). A surface translates a client's
request into it, and answers, streams and errors out of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from core.errors import ApplicationError
from prompts.content.messages import PromptMessage


class SurfaceRequest(msgspec.Struct, frozen=True):
    """A client's request as a chat completion.

    `body` is the chat-completion request as JSON. `fields` are the values that `body` encodes (do not mutate), to save
    decoding it; None if the surface does not have them. `echo` holds what the surface needs to make the answer (decoded
    fields of the client's request); no other module reads it. `warnings` name what the translation left out.

    `untranslatable` names, with the reason (`tools[0]: …`), each field that a chat completion cannot express and
    without which the answer would differ in kind: only a provider of the client's own protocol may serve such a
    request. `opaque` names a field whose texts no guardrail can read, with the reason; empty without one.

    `session_id` is the session in the body, empty without one. `is_stateful`: the request names state that a provider
    keeps, so only this provider may serve it. `is_relayed`: the client has seen the beginning of an answer in the
    provider's own words. `is_plain`: the client's body has none of the gateway's own fields and nothing that
    `Surface.forwarded` would remove. `is_translated`: the protocol is one vendor's, so `body` may hold what only this
    vendor knows.

    `prompt_tokens` estimates the prompt, for a protocol whose streams begin with it; 0 before it is made. `tool_names`
    maps names of tools in `body` to the client's own, where they differ (`gateway.surfaces.tool_names`).
    """

    body: bytes
    untranslatable: tuple[str, ...] = ()
    echo: Any = None
    session_id: str = ""
    is_stateful: bool = False
    is_relayed: bool = False
    opaque: str = ""
    fields: Mapping[str, Any] | None = None
    is_plain: bool = False
    is_translated: bool = False
    warnings: tuple[str, ...] = ()
    prompt_tokens: int = 0
    tool_names: Mapping[str, str] = {}


class StreamEncoder(Protocol):
    def feed(self, chunks: Sequence[bytes]) -> bytes:
        """Returns the framed server-sent events of `chat.completion.chunk` JSON; empty if there are none yet."""
        ...

    def close(self, chunks: Sequence[bytes]) -> bytes: ...

    def fail(self, error: ApplicationError, relayed: bytes = b"") -> bytes:
        """Returns the events that end an answer which broke off after its first output. `relayed` are the events that
        the client has seen from a provider of its own protocol."""
        ...


class Surface(Protocol):
    """A client protocol. It is stateless: one instance serves all requests.

    `native_only`: chat completions cannot express its operation, so only providers that have the operation serve it
    (`gateway.surfaces.native_only`). `counts`: it counts the tokens of a prompt (`CountingSurface`).
    """

    name: str
    operation: str
    native_only: bool
    counts: bool

    def read(self, body: bytes) -> SurfaceRequest:
        """Raises ValidationError (400), whose message names the client's field."""
        ...

    def answer(self, request: SurfaceRequest, completion: bytes, request_id: str) -> bytes: ...

    def stream(self, request: SurfaceRequest, request_id: str) -> StreamEncoder: ...

    def error(self, error: ApplicationError, request_id: str) -> bytes: ...

    def forwarded(self, body: bytes) -> bytes:
        """The client's `body` for a provider of the same protocol, without other vendors' reasoning and citations.
        Other bytes stay unchanged."""
        ...

    def with_prompt(self, body: bytes, messages: Sequence[PromptMessage]) -> bytes:
        """Adds a managed prompt's messages, at least one, to the client's `body`: those of role system and developer as
        instructions, the others before the client's.

        Call it only if the request has no instructions. Other bytes stay unchanged.
        """
        ...


class CountingSurface(Surface, Protocol):
    """A protocol's count of tokens."""

    def count(self, tokens: int) -> bytes: ...
