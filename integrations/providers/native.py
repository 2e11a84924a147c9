"""The client protocols that providers speak themselves, and the adapters that forward their requests unchanged.

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
    @property
    def forward_headers(self) -> tuple[str, ...]:
        """Names of the protocol's client headers, in lower case, that are passed on."""
        ...

    @property
    def takes_own_fields(self) -> bool:
        """Whether the provider also gets the protocol's own fields, tools and blocks from a chat completion, where they
        stand unchanged."""
        ...

    @property
    def parameters(self) -> frozenset[str]:
        """Parameters that the protocol shares with chat completions, in name and values: an integration can set them in
        the client's own body."""
        ...

    @property
    def keeps_state(self) -> bool: ...

    def serves(self, model: str) -> bool: ...

    def takes(self, body: bytes) -> bool: ...

    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        """The chat completion of a whole answer or, if `stream`, its framed chunks. Empty bytes for an answer that
        cannot be read."""
        ...


@runtime_checkable
class PassingForwarder(NativeAdapter, Protocol):
    """Forwards some requests unchanged, under a head that only `forward_headers` change.

    They have only texts and common parameters, name the model as the provider does, and want no cache markers.
    """

    def conforming(self, body: bytes) -> ParsedResponse | None: ...


class OperationAdapter(NativeAdapter, Protocol):
    """An operation that chat completions cannot express (`gateway.surfaces.native_only`)."""

    def parts(self, request: ChatRequest) -> Sequence[ChatRequest]: ...

    def joined(self, request: ChatRequest, answers: Sequence[ParsedResponse]) -> ParsedResponse: ...


# Maps an operation of a client protocol to the places of its adapters ("module:attribute"), which map them by provider.
_PLACES: dict[str, tuple[str, ...]] = {
    "completions": ("integrations.providers.openai.completions:FORWARDERS",),
    "count_tokens": (
        "integrations.providers.anthropic.forwarding:COUNTERS",
        "integrations.providers.claude.vertex:COUNTERS",
    ),
    "count_content_tokens": (
        "integrations.providers.google.forwarding:COUNTERS",
        "integrations.providers.vertex.forwarding:COUNTERS",
    ),
    "embeddings": (
        "integrations.providers.openai.embeddings:FORWARDERS",
        "integrations.providers.google.embeddings:FORWARDERS",
        "integrations.providers.cohere.operations:EMBEDDINGS",
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
    "rerank": ("integrations.providers.openai.operations:RERANK", "integrations.providers.cohere.operations:RERANK"),
    "responses": ("integrations.providers.openai.responses:FORWARDERS",),
    "transcriptions": (
        "integrations.providers.openai.operations:TRANSCRIPTIONS",
        "integrations.providers.mistral.operations:TRANSCRIPTIONS",
    ),
    "speech": ("integrations.providers.openai.operations:SPEECH",),
}


@lru_cache(maxsize=4096)
def native_adapter(provider: str, operation: str) -> NativeAdapter | None:
    """None if the provider does not have the operation (`messages`)."""
    for place in _PLACES.get(operation, ()):
        module, _, attribute = place.partition(":")
        adapters: dict[str, NativeAdapter] = getattr(import_module(module), attribute)
        if provider in adapters:
            return adapters[provider]
    return None
