"""The protocol between the pipeline and a provider: pure functions over bytes, no socket, no framework.

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


@dataclass(frozen=True, slots=True)
class Credentials:
    """The decrypted access to one provider for one project. It is never logged and never sent to a client: `repr` hides
    the secrets.

    `secret` is the API key; `extra` holds further fields of some providers (`api_version`, `access_key_id`, `region`…).
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


@dataclass(frozen=True, slots=True)
class Media:
    """A file that was fetched for a provider that takes bytes only. `media_type` was detected from the bytes."""

    media_type: str
    data: bytes = field(repr=False)


NO_MEDIA: Mapping[str, Media] = MappingProxyType({})


# The class is a msgspec struct because one is made for each request, and a frozen dataclass takes twenty times as long
# to make.
class ChatRequest(msgspec.Struct, frozen=True):
    """A validated request as the pipeline passes it to an adapter.

    `body` is the client's body, byte for byte; `fields` is the same decoded (do not mutate); `model` is the name to
    send upstream. An adapter of the same dialect forwards `body` unless something has to change. `crosses_vendor` means
    that another vendor's provider was asked first, so that fields which only that vendor understands have to be left
    out. `media` and `access_token` hold what `Adapter.needs` asked for. `own_parameters` are parameters that the
    integration set for this provider, so that they are kept when the vendor changes. `max_output` is the listed largest
    answer of the model in tokens, filled in where the provider's traits ask for it. `headers` are the client's headers
    that belong to its own protocol, of a request that is forwarded in that protocol (`integrations.providers.native`).
    `cache_markers` means that the project asks for prompt-cache markers where the provider needs them. `body_model` is
    the model that `body` names, empty where the caller does not have it. `is_plain` means that `body` is a chat
    completion that names `model` and has neither the gateway's own fields nor `thinking`. `is_translated` means that
    the client wrote the request in another protocol than chat completions, so that `body` may hold what only that
    protocol's vendor knows; one that is plain as well holds texts and common parameters alone. `warnings` name what was
    left out before. `known_as` is the client's name of the model where `model` is a deployment's own, else empty.
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
        """Returns the name that tells what kind of model it is."""
        return self.known_as or self.model

    @property
    def is_foreign(self) -> bool:
        """Returns whether what only another vendor knows has to be left out."""
        return self.crosses_vendor or self.is_translated

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, stream={self.stream!r}, body={self.body!r})"


@dataclass(frozen=True, slots=True)
class Needs:
    """The resources that have to be fetched before a request can be built: files by address, an OAuth access token."""

    media: tuple[str, ...] = ()
    access_token: bool = False


NOTHING = Needs()


class UpstreamRequest(msgspec.Struct, frozen=True):
    """An HTTP request to a provider. `url` is absolute; header names are in lower case. `warnings` name each of the
    client's parameters that this provider has no place for and that were left out. `betas` are the beta features that
    the provider knows, None for one that takes every name in the client's header."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    warnings: tuple[str, ...] = ()
    betas: frozenset[str] | None = None

    def __repr__(self) -> str:
        """Returns a text without the headers and the body, which may hold secrets."""
        return f"{type(self).__name__}(method={self.method!r}, url={self.url!r}, warnings={self.warnings!r})"


class UploadRequest(UpstreamRequest, frozen=True, kw_only=True):
    """A request whose body is the rest of `file`, `length` bytes, which are read as they leave. The transport closes
    the file."""

    file: BinaryIO
    length: int


class ParsedResponse(msgspec.Struct, frozen=True, gc=False):
    """A whole answer: `body` is the chat-completion JSON for the client (the provider's own bytes when nothing had to
    change), the other fields are for the record. `recorded` is what the record keeps in place of a body that nobody
    reads (vectors, audio), None for the body itself. `given` is what a client that gets the answer may name later."""

    body: bytes
    model: str
    finish_reason: str
    usage: Usage | None
    recorded: bytes | None = None
    given: tuple[Given, ...] = NOTHING_GIVEN


# The class is a msgspec struct because one is made for each chunk of a stream.
class StreamEvent(msgspec.Struct, gc=False):
    """One event for the client. `data` is the JSON of a `chat.completion.chunk` without framing (the provider's bytes
    when nothing had to change). `has_output` is False for a preamble (role only, empty delta, keep-alive): the gate for
    the first chunk waits for a True. `text` is the visible text delta of choice 0, kept for the record and to estimate
    the tokens of a broken stream."""

    data: bytes
    has_output: bool
    text: str = ""


class StreamTranslator(Protocol):
    """Translates the provider's bytes, cut anywhere, to events; one instance per attempt.

    Usage is never sent by `feed`: it is collected in `usage`, and the last chunk, from `closing()`, carries it once. A
    caller that finds `usage` None at the end may set an estimate before `closing()`. `given` is what the events so far
    have given out of what the provider keeps, which may be there twice.
    """

    usage: Usage | None
    model: str
    finish_reason: str

    @property
    def given(self) -> tuple[Given, ...]: ...

    @property
    def has_plain(self) -> bool:
        """Returns whether `plain` returns a text for some of the chunks."""
        ...

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Returns the events that `data` completes. Raises ProviderError when the provider reports an error inside the
        stream."""
        ...

    def plain(self, data: bytes) -> str:
        """Returns the text that `data` add to the answer, where they are one whole event which does nothing else and
        leaves as it came; an empty text for any other data. Nothing is taken: what returns a text need not be fed, and
        all else has to be."""
        ...

    def closing(self) -> list[StreamEvent]:
        """Returns the last chunk (empty delta, `finish_reason`, `usage`), without `[DONE]`; called once at the end of
        the provider's stream. Raises ProviderError(UNUSABLE) when the stream ended before its terminator."""
        ...


@dataclass(frozen=True, slots=True)
class Traits:
    """The declared facts about a provider.

    `title` is its name as the vendor writes it. An empty `base_url` means that the integration has to name one.
    `optional_secret`: the provider may be used without a key. `secret_extra`: secret fields that together replace the
    key; `optional_extra`: secret fields that may be added to them. `options`: the plain fields, and `required_options`
    the mandatory ones. `service_account`: the key may be a Google service account's JSON; with a plain API key there
    `required_options` are not required. `default_model`: the model to fall back to at a provider that does not serve
    the requested one. `functions`: how OpenAI's older `functions` are sent: as tools, or unchanged, always or on direct
    requests (see `legacy_functions`). `forward_headers`: the client's headers, in lower case, that are passed on unless
    the integration lists others. `needs_max_output`: requests have to carry the model's largest output. `json_schema`:
    it takes a JSON schema for the answer, or is asked for one by a tool.
    `claude_blocks`: how the models begin that take Claude's own blocks back; an empty text stands for all.
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
    """A provider's dialect. It is stateless: one instance serves all requests."""

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
        """Returns the failure behind a non-2xx answer, with its message but without keys and account ids."""
        ...


@runtime_checkable
class PassingAdapter(Adapter, Protocol):
    """An adapter that sends most requests almost as they came, and passes most answers on."""

    @property
    def marks(self) -> tuple[bytes, ...]:
        """Returns byte strings. The body of a plain request (`ChatRequest.is_plain`) that asks for no stream and in
        which none of them occurs is what `forwarded` returns."""
        ...

    def forwarded(self, request: ChatRequest) -> bytes | None:
        """Returns the body that the provider gets of a request that asks for no stream; None where something has to be
        fetched for it, is left out of it with a warning, or changes the way in which the answer is read. Raises
        UnsupportedParameterError."""
        ...

    def conforming(self, body: bytes) -> ParsedResponse | None:
        """Returns the answer to such a request where a client gets the body as it is, None for any other."""
        ...
