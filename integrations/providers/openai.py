"""The adapter of the OpenAI dialect (https://platform.openai.com/docs/api-reference/chat).

A look-alike is a `Dialect` row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from integrations.providers.base import (
    ChatRequest,
    Credentials,
    ParsedResponse,
    StreamTranslator,
    UpstreamRequest,
)
from integrations.providers.errors import ProviderError
from integrations.providers.failures import failure, redact
from integrations.providers.openai_request import Documents, Thinking, build_body
from integrations.providers.openai_response import parse_response
from integrations.providers.openai_stream import OpenAIStream


@dataclass(frozen=True, slots=True)
class Dialect:
    """One provider that speaks the dialect: where it listens and where it differs.

    An empty `base_url` means that the integration has to name one. `optional_secret`: may be used without a key.
    """

    provider: str
    base_url: str
    owned_by: str = ""
    default_model: str = ""
    documents: Documents = Documents.REFUSE
    thinking: Thinking = Thinking.PASS
    stream_options: bool = True
    optional_secret: bool = False


OPENAI = Dialect(
    provider="openai",
    base_url="https://api.openai.com/v1",
    owned_by="openai",
    default_model="gpt-4o-mini",
    documents=Documents.FILE_DATA,
    thinking=Thinking.EFFORT,
)

USER_AGENT = "prompt-gateway"
_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    url: str
    headers: Mapping[str, str]


class PerCredentials:
    """What is the same for every request with the same credentials, made once.

    Keyed by identity: a changed integration is a new object. Holding the object keeps its id from being reused.
    """

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[Credentials], Endpoint]) -> None:
        self._make = make
        self._known: dict[int, tuple[Credentials, Endpoint]] = {}

    def get(self, credentials: Credentials) -> Endpoint:
        known = self._known.get(id(credentials))
        if known is not None and known[0] is credentials:
            return known[1]
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        endpoint = self._make(credentials)
        self._known[id(credentials)] = (credentials, endpoint)
        return endpoint

    def secrets(self) -> tuple[str, ...]:
        """Every secret in use: what no message to a client may hold."""
        return tuple({credentials.secret for credentials, _ in self._known.values() if credentials.secret})


class OpenAIAdapter:
    """Stateless but for the remembered endpoints."""

    def __init__(self, dialect: Dialect = OPENAI) -> None:
        self.provider = dialect.provider
        self.dialect = dialect
        self._endpoints = PerCredentials(self._endpoint)

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._endpoints.get(credentials)
        dialect = self.dialect
        body = build_body(
            request,
            provider=self.provider,
            documents=dialect.documents,
            thinking=dialect.thinking,
            stream_options=dialect.stream_options,
        )
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, body)

    def parse_response(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        try:
            return parse_response(request, body, provider=self.provider)
        except ProviderError as error:
            self._redact(error)
            raise

    def stream(self, request: ChatRequest) -> StreamTranslator:
        return OpenAIStream(model=request.model, provider=self.provider, redact=self._redact)

    def classify_failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        error = failure(provider=self.provider, status=status, headers=headers, body=body)
        self._redact(error)
        return error

    def _redact(self, error: ProviderError) -> None:
        redact(error, self._endpoints.secrets())

    def _endpoint(self, credentials: Credentials) -> Endpoint:
        base_url = (credentials.base_url or self.dialect.base_url).rstrip("/")
        headers = {"content-type": "application/json", "user-agent": USER_AGENT}
        if credentials.secret:
            headers["authorization"] = f"Bearer {credentials.secret}"
        return Endpoint(f"{base_url}/chat/completions", headers)


ADAPTER = OpenAIAdapter()
