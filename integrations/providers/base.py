"""The protocol between the pipeline and a provider: pure functions over bytes, without I/O or a framework.

The neutral shapes are OpenAI's chat-completion shapes (docs/chat-completions.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, BinaryIO, Literal, Protocol, runtime_checkable

import msgspec

from integrations.providers.errors import ProviderError
from integrations.providers.given import NOTHING_GIVEN, Given
from integrations.providers.usage import Usage

AMBIENT = "ambient"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The decrypted access to one provider for one project. Never log it or send it to a client; `repr` hides the
    secrets.

    `secret` is the API key; `extra` holds some providers' further fields (`api_version`, `access_key_id`, `region`…).
    The other fields are the additions to every request (see `additions`): parameters in OpenAI's names, headers with
    names in lower case, whose values may be secret, and the names of the client's headers that are passed on.
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
    # Whether requests may name all that the account keeps, since no other project uses it.
    own_account: bool = False
    # `sets_parameters` is computed once for each credentials object and not for each request.
    sets_parameters: bool = field(init=False, repr=False, compare=False)
    adds_headers: bool = field(init=False, repr=False, compare=False)
    forwarded_names: frozenset[bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sets_parameters", bool(self.default_parameters or self.forced_parameters))
        object.__setattr__(self, "adds_headers", bool(self.extra_headers or self.forward_headers))
        object.__setattr__(self, "forwarded_names", frozenset(name.encode() for name in self.forward_headers))

    @property
    def is_ambient(self) -> bool:
        """The machine's role gives the key (`transport.ambient`)."""
        return self.extra.get("credentials") == AMBIENT


@dataclass(frozen=True, slots=True)
class Media:
    """A file that was fetched for a provider that takes only bytes. `media_type` was detected from the bytes."""

    media_type: str
    data: bytes = field(repr=False)


NO_MEDIA: Mapping[str, Media] = MappingProxyType({})


# The class is a msgspec struct because one is made for each request, and a frozen dataclass takes twenty times as long
# to make.
class ChatRequest(msgspec.Struct, frozen=True):
    """A validated request as the pipeline passes it to an adapter.

    `body` is the client's body, byte for byte; `fields` is the same decoded (do not mutate); `model` is the name to
    send upstream. An adapter of the same dialect forwards `body` unless something has to change. `body_model` is the
    model that `body` names, empty if the caller does not have it. `known_as` is the client's name of the model if
    `model` is a deployment's own, else empty.

    `crosses_vendor`: another vendor's provider was asked first, so fields that only that vendor understands must be
    left out. `own_parameters` are those that the integration set for this provider; they are kept when the vendor
    changes. `is_plain`: `body` is a chat completion that names `model` and has neither the gateway's own fields nor
    `thinking`. `is_translated`: the client used another protocol than chat completions, so `body` may hold what only
    that protocol's vendor knows; if it is plain as well, it has only texts and common parameters.

    `media` and `access_token` hold what `Adapter.needs` asked for. `max_output` is the model's listed largest answer in
    tokens, filled in if the provider's traits ask for it. `headers` are the client's headers that belong to its own
    protocol, in a request that is forwarded in that protocol (`integrations.providers.native`). `cache_markers`: the
    project asks for prompt-cache markers where the provider needs them. `warnings` name what was left out before.
    """

    model: str
    stream: bool
    body: bytes
    fields: Mapping[str, Any]
    crosses_vendor: bool = False
    media: Mapping[str, Media] = NO_MEDIA
    access_token: str = ""
    own_parameters: frozenset[str] = frozenset()
    max_output: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    cache_markers: bool = False
    body_model: str = ""
    is_plain: bool = False
    is_translated: bool = False
    warnings: tuple[str, ...] = ()
    known_as: str = ""

    @property
    def family(self) -> str:
        return self.known_as or self.model

    @property
    def is_foreign(self) -> bool:
        return self.crosses_vendor or self.is_translated

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, stream={self.stream!r}, body={self.body!r})"


@dataclass(frozen=True, slots=True)
class Needs:
    """What must be fetched before a request can be built: files by address, an OAuth access token."""

    media: tuple[str, ...] = ()
    access_token: bool = False


NOTHING = Needs()


class UpstreamRequest(msgspec.Struct, frozen=True):
    """An HTTP request to a provider.

    `url` is absolute; header names are in lower case. `warnings` name the client's parameters that this provider has no
    place for and that were left out. `betas` are the beta features that the provider knows; None accepts every name in
    the client's header.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    warnings: tuple[str, ...] = ()
    betas: frozenset[str] | None = None

    def __repr__(self) -> str:
        """Leaves out the headers and the body, which may hold secrets."""
        return f"{type(self).__name__}(method={self.method!r}, url={self.url!r}, warnings={self.warnings!r})"


class UploadRequest(UpstreamRequest, frozen=True, kw_only=True):
    """A request whose body is the rest of `file`, `length` bytes, read while it is sent. The transport closes the
    file.
    """

    file: BinaryIO
    length: int


class ParsedResponse(msgspec.Struct, frozen=True, gc=False):
    """A whole answer: `body` is the chat-completion JSON for the client (the provider's bytes if nothing had to
    change), the other fields are for the record.

    `recorded` is the record of a body that nobody reads (vectors, audio), None for the body itself. `given` is what a
    client that gets the answer may name later.
    """

    body: bytes
    model: str
    finish_reason: str
    usage: Usage | None
    recorded: bytes | None = None
    given: tuple[Given, ...] = NOTHING_GIVEN


# The class is a msgspec struct because one is made for each chunk of a stream.
class StreamEvent(msgspec.Struct, gc=False):
    """One event for the client.

    `data` is the JSON of a `chat.completion.chunk` without framing (the provider's bytes if nothing had to change).
    `has_output` is False for a preamble (role only, empty delta, keep-alive): the gate for the first chunk waits for a
    True. `text` is the visible text delta of choice 0, kept for the record and to estimate the tokens of a broken
    stream.
    """

    data: bytes
    has_output: bool
    text: str = ""


class StreamTranslator(Protocol):
    """Translates the provider's bytes, cut anywhere, to events; one instance per attempt.

    `feed` never sends usage: `usage` collects it, and the last chunk, from `closing()`, carries it once. A caller that
    finds `usage` None at the end may set an estimate before `closing()`. `given` lists what the events so far have
    given out of what the provider keeps, and may hold duplicates.
    """

    usage: Usage | None
    model: str
    finish_reason: str

    @property
    def given(self) -> tuple[Given, ...]: ...

    @property
    def has_plain(self) -> bool: ...

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Returns the events that `data` completes. Raises ProviderError for an error inside the stream."""
        ...

    def plain(self, data: bytes) -> str:
        """The answer text in `data`, if it is one whole event that only adds text and is forwarded unchanged; else
        empty.

        Consumes nothing: skip `feed` if this returned a text, and feed all other data.
        """
        ...

    def closing(self) -> list[StreamEvent]:
        """Returns the last chunk (empty delta, `finish_reason`, `usage`), without `[DONE]`; call it once at the end of
        the stream.

        Raises ProviderError(UNUSABLE) if the stream ended before its terminator.
        """
        ...


@dataclass(frozen=True, slots=True)
class Traits:
    """The declared facts about a provider.

    `title` is its name as the vendor writes it. Without a `base_url` the integration must name one. `optional_secret`:
    it may be used without a key. `secret_extra`: secret fields that together replace the key; `optional_extra`: secret
    fields that may be added to them. `options`: the plain fields, and `required_options` the mandatory ones.
    `service_account`: the key may be a Google service account's JSON; with a plain API key, `required_options` are not
    required. `default_model`: the model to fall back to at a provider that does not serve the requested one.
    `functions`: how OpenAI's older `functions` are sent: as tools, or unchanged, always or on direct requests (see
    `legacy_functions`). `forward_headers`: the client's headers, in lower case, that are passed on unless the
    integration lists others. `needs_max_output`: requests must carry the model's largest output. `json_schema`: it
    takes a JSON schema for the answer, or is asked for one by a tool. `claude_blocks`: prefixes of the models that take
    Claude's own blocks back; an empty text stands for all.
    """

    provider: str
    base_url: str
    title: str = ""
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
    claude_blocks: tuple[str, ...] = ()
    json_schema: bool = True


class Adapter(Protocol):
    provider: str

    @property
    def traits(self) -> Traits: ...

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs: ...

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        """Raises UnsupportedParameterError if the answer would differ in kind from what the request asks for."""
        ...

    def parse_response(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        """Raises ProviderError(UNUSABLE) if a 2xx body is not an answer, or carries an error."""
        ...

    def stream(self, request: ChatRequest) -> StreamTranslator: ...

    def classify_failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError: ...


@runtime_checkable
class PassingAdapter(Adapter, Protocol):
    @property
    def marks(self) -> tuple[bytes, ...]:
        """If a plain request (`ChatRequest.is_plain`) without `stream` contains none of these bytes, `forwarded`
        returns its body."""
        ...

    def forwarded(self, request: ChatRequest) -> bytes | None:
        """The body that the provider gets of a request without `stream`.

        None if something must be fetched for it, is left out with a warning, or changes how the answer is read. Raises
        UnsupportedParameterError.
        """
        ...

    def conforming(self, body: bytes) -> ParsedResponse | None:
        """The answer to such a request if the client gets the body unchanged, else None."""
        ...
