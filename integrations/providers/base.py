"""The protocol between the pipeline and a provider: pure functions over bytes, no socket, no framework.

The neutral shapes are OpenAI's chat-completion shapes (docs/chat-completions.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec
from typing_extensions import override

from integrations.providers.errors import ProviderError
from integrations.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class Credentials:
    """Decrypted access to one provider for one project. Never logged, never sent to a client: `repr` hides the secrets.

    `secret` is the API key; `extra` holds what some kinds need beside it (`api_version`, `access_key_id`, `region`…).
    The rest is what `additions` puts into every request: parameters in OpenAI's words, headers with names in lower
    case, whose values may be secret, and the names of the client's headers that are passed on.
    """

    integration_id: int
    provider: str
    base_url: str
    secret: str = field(repr=False)
    extra: Mapping[str, str] = field(default_factory=dict, repr=False)
    default_parameters: Mapping[str, Any] = field(default_factory=dict)
    forced_parameters: Mapping[str, Any] = field(default_factory=dict)
    extra_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    forward_headers: tuple[str, ...] = ()
    # Worked out here and not for each request.
    sets_parameters: bool = field(init=False, repr=False, compare=False)
    adds_headers: bool = field(init=False, repr=False, compare=False)
    forwarded_names: frozenset[bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sets_parameters", bool(self.default_parameters or self.forced_parameters))
        object.__setattr__(self, "adds_headers", bool(self.extra_headers or self.forward_headers))
        object.__setattr__(self, "forwarded_names", frozenset(name.encode() for name in self.forward_headers))


@dataclass(frozen=True, slots=True)
class Media:
    """A file that was fetched for a provider that takes bytes only. `media_type` was sniffed from them."""

    media_type: str
    data: bytes = field(repr=False)


# Made for each request: structs and no dataclasses, which cost twenty times as much to make when they are frozen.
class ChatRequest(msgspec.Struct, frozen=True):
    """A validated request as the pipeline hands it to an adapter.

    `body` is what the client sent, byte for byte; `fields` is the same decoded (do not mutate); `model` is the name to
    send upstream. An adapter of the same dialect forwards `body` unless something has to change.
    `crosses_vendor`: another provider was asked first, so what only that vendor understands has to be left out.
    `media` and `access_token` hold what `Adapter.needs` asked for. `own_parameters` were set by the integration for
    exactly this provider, so that they are not another vendor's where the vendor changes. `max_output` is the largest
    answer in tokens that the model is listed with, filled in where the provider's traits ask for it.
    """

    model: str
    stream: bool
    body: bytes
    fields: Mapping[str, Any]
    crosses_vendor: bool = False
    media: Mapping[str, Media] = msgspec.field(default_factory=dict)
    access_token: str = ""
    own_parameters: frozenset[str] = frozenset()
    max_output: int | None = None

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, stream={self.stream!r}, body={self.body!r})"


@dataclass(frozen=True, slots=True)
class Needs:
    """The things that have to be fetched before a request can be built: files by address, an OAuth access token."""

    media: tuple[str, ...] = ()
    access_token: bool = False


NOTHING = Needs()


class UpstreamRequest(msgspec.Struct, frozen=True):
    """One HTTP request. `url` is absolute; header names are lower case.

    `warnings` name each of the client's parameters that this provider has no place for and that were left out.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    warnings: tuple[str, ...] = ()

    @override
    def __repr__(self) -> str:
        """Leaves out the headers and the body, which may hold secrets."""
        return f"{type(self).__name__}(method={self.method!r}, url={self.url!r}, warnings={self.warnings!r})"


class ParsedResponse(msgspec.Struct, frozen=True, gc=False):
    """A whole answer: `body` is the chat-completion JSON to send to the client (the provider's own bytes when nothing
    had to change), the rest is what the record needs."""

    body: bytes
    model: str
    finish_reason: str
    usage: Usage | None


@dataclass(slots=True)
class StreamEvent:
    """One event for the client.

    `data` is the JSON of a `chat.completion.chunk` without framing (the provider's bytes when nothing had to change).
    `has_output` is False for preamble (role only, empty delta, keep-alive): the first-chunk gate waits for a True.
    `text` is the visible text delta of choice 0, kept for the record and to estimate tokens of a cut stream.
    """

    data: bytes
    has_output: bool
    text: str = ""


class StreamTranslator(Protocol):
    """Turns the provider's bytes, cut anywhere, into events; one instance per attempt.

    Usage never leaves through `feed`: it is collected in `usage`, and the last chunk, `closing()`, carries it once.
    A caller that finds `usage` None at the end may set an estimate before `closing()`.
    """

    usage: Usage | None
    model: str
    finish_reason: str

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Returns the events that `data` completes. Raises ProviderError when the provider reports an error inside the
        stream."""
        ...

    def closing(self) -> list[StreamEvent]:
        """Call once at the end of the provider's stream: the last chunk (empty delta, `finish_reason`, `usage`),
        without `[DONE]`. Raises ProviderError(UNUSABLE) when the stream ended before its terminator."""
        ...


@dataclass(frozen=True, slots=True)
class Traits:
    """The declared facts about a provider.

    An empty `base_url` means that the integration has to name one. `optional_secret`: may be used without a key.
    `secret_extra`: secret fields that take the key's place together; `optional_extra`: secret fields that may go with
    them. `options`: the plain ones, and `required_options` those that must be there. `service_account`: the key may
    be a Google service account's JSON; with a plain API key there `required_options` are not required.
    `default_model` is the model to fall back to at a provider that does not serve the one asked for.
    `functions`: what becomes of OpenAI's older `functions`: they go out as tools, or as they are, always or on direct
    requests (see `legacy_functions`). `forward_headers` are the client's headers that go on to the provider where the
    integration does not say which, in lower case. `needs_max_output`: requests have to carry the model's
    largest output.
    """

    provider: str
    base_url: str
    owned_by: str = ""
    default_model: str = ""
    optional_secret: bool = False
    secret_extra: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    optional_extra: tuple[str, ...] = ()
    required_options: tuple[str, ...] = ()
    service_account: bool = False
    functions: Literal["as_tools", "direct", "always"] = "as_tools"
    forward_headers: tuple[str, ...] = ()
    needs_max_output: bool = False


class Adapter(Protocol):
    """A provider's dialect. Stateless: one instance serves all requests."""

    provider: str

    @property
    def traits(self) -> Traits: ...

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        """Returns the files and tokens that `build_request` will look for in `request.media` and
        `request.access_token`; for most requests `NOTHING`."""
        ...

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        """Returns the provider's HTTP request. Raises UnsupportedParameterError when the answer would differ in kind
        from what the request asks for."""
        ...

    def parse_response(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        """Returns the answer in a 2xx body. Raises ProviderError(UNUSABLE) when a 2xx body is not an answer, or carries
        an error."""
        ...

    def stream(self, request: ChatRequest) -> StreamTranslator: ...

    def classify_failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """Returns the failure behind a non-2xx answer, its message kept, keys and account ids taken out."""
        ...
