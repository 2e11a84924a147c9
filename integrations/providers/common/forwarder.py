from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from integrations.providers.base import (
    NOTHING,
    ChatRequest,
    Credentials,
    Needs,
    ParsedResponse,
    StreamTranslator,
    UpstreamRequest,
)
from integrations.providers.common.adapter import DialectAdapter
from integrations.providers.errors import ProviderError, UnsupportedParameterError, unusable

Dialect = TypeVar("Dialect", bound=DialectAdapter)


class Forwarder(ABC, Generic[Dialect]):
    """A native adapter, which sends and fails as the provider's adapter of chat completions does."""

    forward_headers: tuple[str, ...] = ()
    takes_own_fields = False
    parameters: frozenset[str] = frozenset()
    keeps_state = False

    def __init__(self, adapter: Dialect) -> None:
        self._dialect = adapter
        self.provider = adapter.provider
        self.traits = adapter.traits

    def serves(self, model: str) -> bool:
        return True

    def takes(self, body: bytes) -> bool:
        return True

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        return NOTHING

    @abstractmethod
    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest: ...

    def parse_response(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        try:
            return self._parse(request, body)
        except ProviderError as error:
            self._dialect.redact(error)
            raise

    @abstractmethod
    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse: ...

    def _unusable(self, message: str) -> ProviderError:
        return unusable(message, self.provider)

    def classify_failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return self._dialect.classify_failure(status, headers, body)


class OperationForwarder(Forwarder[Dialect]):
    """A native adapter of an operation that no chat completion can express (docs/surfaces.md), embeddings and the like.
    It reads the client's own request and writes the client's own form of answer."""

    def stream(self, request: ChatRequest) -> StreamTranslator:
        raise UnsupportedParameterError("stream", "this operation has no streams", provider=self.provider)

    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        return answer

    def parts(self, request: ChatRequest) -> Sequence[ChatRequest]:
        return (request,)

    def joined(self, request: ChatRequest, answers: Sequence[ParsedResponse]) -> ParsedResponse:
        return answers[0]
