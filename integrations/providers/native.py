"""The client protocols that providers speak themselves, each with the adapter that forwards a request as it came.

A native adapter is an `Adapter` whose requests, answers and events are those of the client's protocol in place of chat
completions (docs/architecture.md#surfaces).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Protocol, runtime_checkable

from integrations.providers.base import Adapter, ChatRequest, ParsedResponse


class NativeAdapter(Adapter, Protocol):
    """An adapter that forwards requests of one client protocol."""

    @property
    def forward_headers(self) -> tuple[str, ...]:
        """Returns the names of the client's headers, in lower case, that belong to the protocol and are passed on."""
        ...

    @property
    def takes_own_fields(self) -> bool:
        """Returns whether the provider also gets the protocol's own fields, tools and blocks out of a chat completion,
        in which they stand unchanged."""
        ...

    @property
    def parameters(self) -> frozenset[str]:
        """Returns the parameters that the protocol has under the names and with the values of chat completions, so that
        an integration can set them in the client's own body."""
        ...

    @property
    def keeps_state(self) -> bool:
        """Returns whether the provider keeps what a request produced, for later requests to name it."""
        ...

    def serves(self, model: str) -> bool:
        """Returns whether the provider speaks the protocol for the model."""
        ...

    def takes(self, body: bytes) -> bool:
        """Returns whether the provider can serve the client's own body as it is."""
        ...

    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        """Returns the JSON of the chat completion that says the same as a whole answer or, if `stream`, the framed
        chunks that say the same as the framed events. Returns empty bytes for an answer that cannot be read."""
        ...


@runtime_checkable
class PassingForwarder(NativeAdapter, Protocol):
    """An adapter that sends a request of texts and common parameters alone as it came where it names the model as the
    provider does and the project asks for no cache markers, under a head that only `forward_headers` change."""

    def conforming(self, body: bytes) -> ParsedResponse | None:
        """Returns the answer to such a request if it is a usual one; None for any other, which `parse_response`
        reads."""
        ...


class OperationAdapter(NativeAdapter, Protocol):
    """An adapter of an operation that no chat completion can express (`gateway.surfaces.native_only`)."""

    def parts(self, request: ChatRequest) -> Sequence[ChatRequest]:
        """Returns the requests that the provider gets in place of one that is larger than it takes, in the order of
        their inputs; the request alone where it fits."""
        ...

    def joined(self, request: ChatRequest, answers: Sequence[ParsedResponse]) -> ParsedResponse:
        """Returns the answer to the request, from those to its parts in their order."""
        ...


# Maps an operation of a client protocol to the places of its adapters ("module:attribute"), which map them by provider.
_PLACES: dict[str, tuple[str, ...]] = {
    "completions": ("integrations.providers.openai.completions:FORWARDERS",),
    "count_tokens": (
        "integrations.providers.anthropic.counting:COUNTERS",
        "integrations.providers.claude.vertex:COUNTERS",
    ),
    "count_content_tokens": (
        "integrations.providers.google.forwarding:COUNTERS",
        "integrations.providers.vertex.forwarding:COUNTERS",
    ),
    "embeddings": (
        "integrations.providers.openai.embeddings:FORWARDERS",
        "integrations.providers.google.embeddings:FORWARDERS",
        "integrations.providers.cohere.embeddings:FORWARDERS",
        "integrations.providers.mistral.operations:EMBEDDINGS",
        "integrations.providers.bedrock.embeddings:FORWARDERS",
    ),
    "generate_content": (
        "integrations.providers.google.forwarding:FORWARDERS",
        "integrations.providers.vertex.forwarding:FORWARDERS",
    ),
    "images": ("integrations.providers.openai.operations:IMAGES",),
    "messages": (
        "integrations.providers.anthropic.forwarding:FORWARDERS",
        "integrations.providers.claude.bedrock:FORWARDERS",
        "integrations.providers.claude.vertex:FORWARDERS",
    ),
    "moderations": (
        "integrations.providers.openai.operations:MODERATIONS",
        "integrations.providers.mistral.operations:MODERATIONS",
    ),
    "rerank": ("integrations.providers.openai.operations:RERANK", "integrations.providers.cohere.rerank:FORWARDERS"),
    "responses": ("integrations.providers.openai.responses:FORWARDERS",),
    "transcriptions": (
        "integrations.providers.openai.transcriptions:FORWARDERS",
        "integrations.providers.mistral.operations:TRANSCRIPTIONS",
    ),
    "speech": ("integrations.providers.openai.operations:SPEECH",),
}


@lru_cache(maxsize=4096)
def native_adapter(provider: str, operation: str) -> NativeAdapter | None:
    """Returns the adapter that forwards requests of the operation (`messages`) to the provider; None where the provider
    does not have it."""
    for place in _PLACES.get(operation, ()):
        module, _, attribute = place.partition(":")
        adapters: dict[str, NativeAdapter] = getattr(import_module(module), attribute)
        if provider in adapters:
            return adapters[provider]
    return None
