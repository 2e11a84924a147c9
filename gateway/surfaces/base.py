"""The interface between the pipeline and a client protocol: pure functions over bytes (docs/architecture.md#surfaces).

The pipeline knows one form of request and answer: OpenAI's chat completions (docs/chat-completions.md). A surface
translates a client's request into it, and answers, streams and errors out of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from core.errors import ApplicationError
from prompts.content.messages import PromptMessage


class SurfaceRequest(msgspec.Struct, frozen=True):
    """A client's request as a chat completion.

    `body` is the chat-completion request as JSON. `untranslatable` names each field of the client's request that a chat
    completion cannot express and without which the answer would differ in kind, with the reason (`tools[0]: …`): only a
    provider that speaks the client's own protocol may serve such a request. `echo` holds what the surface needs to make
    the answer (decoded fields of the client's request); no other module reads it. `session_id` is the session that the
    client names in the body, empty without one. `is_stateful` means that the request names what a provider keeps of
    earlier ones, so that only this provider may serve it. `is_relayed` means that the client has seen the beginning of
    an answer in the provider's own words.
    `opaque` names a field whose texts no guardrail can read, with the reason, and is empty without one.
    `fields` are the values that `body` encodes (do not mutate), so that nobody has to decode it again; None where the
    surface does not have them. `is_plain` means that the client's body has none of the gateway's own fields and nothing
    that `Surface.forwarded` would remove. `is_translated` means that the protocol is one vendor's, so that `body` may
    hold what only this vendor knows. `warnings` name what the translation has left out. `prompt_tokens` is the estimate
    of the prompt, for a protocol whose streams begin with it; 0 before it is made. `tool_names` are the client's own
    names of its tools by those in `body`, without the tools whose name is the same (`gateway.surfaces.tool_names`).
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
    """Makes the events of one streamed answer; one instance for each answer."""

    def feed(self, chunks: Sequence[bytes]) -> bytes:
        """Returns the framed server-sent events for the JSON of each `chat.completion.chunk`; empty when there are none
        yet."""
        ...

    def close(self, chunks: Sequence[bytes]) -> bytes:
        """Returns the events that end a complete answer. `chunks` are its last ones, which hold the finish reason and
        the usage."""
        ...

    def fail(self, error: ApplicationError, relayed: bytes = b"") -> bytes:
        """Returns the events that end an answer that broke off after its first output. `relayed` are the events of a
        provider of the client's own protocol that the client has seen."""
        ...


class Surface(Protocol):
    """A client protocol. It is stateless: one instance serves all requests.

    `native_only` means that no chat completion can express its operation, so that only providers that have the
    operation serve its requests (`gateway.surfaces.native_only`). `counts` means that its operation is a count of the
    tokens of a prompt (`CountingSurface`).
    """

    name: str
    operation: str
    native_only: bool
    counts: bool

    def read(self, body: bytes) -> SurfaceRequest:
        """Returns the request as a chat completion. Raises ValidationError (400), whose message names the client's
        field."""
        ...

    def answer(self, request: SurfaceRequest, completion: bytes, request_id: str) -> bytes:
        """Returns the JSON of a whole answer for the client, from the JSON of a chat completion."""
        ...

    def stream(self, request: SurfaceRequest, request_id: str) -> StreamEncoder: ...

    def error(self, error: ApplicationError, request_id: str) -> bytes:
        """Returns the JSON of an error with a status."""
        ...

    def forwarded(self, body: bytes) -> bytes:
        """Returns the client's own `body` for a provider of the same protocol: without reasoning and citations that
        another vendor made. All other bytes stay as they are."""
        ...

    def with_prompt(self, body: bytes, messages: Sequence[PromptMessage]) -> bytes:
        """Returns the client's own `body` with the messages of a managed prompt, of which there is at least one: those
        of role system and developer as its instructions, the others before the client's. Called only where the request
        has no instructions. All other bytes of the request stay as they are."""
        ...


class CountingSurface(Surface, Protocol):
    """A protocol's count of tokens."""

    def count(self, tokens: int) -> bytes:
        """Returns the JSON of a count that the gateway made itself."""
        ...
