"""The base of the adapters, which redacts the secrets in use from every failure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from integrations.providers.base import ChatRequest, ParsedResponse, Traits
from integrations.providers.common.endpoints import PerCredentials
from integrations.providers.common.failures import failure, redact
from integrations.providers.errors import ProviderError


class DialectAdapter(ABC):
    """An adapter's only state is its cache per credentials object, which also lists the secrets in use."""

    def __init__(self, traits: Traits, known: PerCredentials[Any]) -> None:
        self.provider = traits.provider
        self._traits = traits
        self._known = known

    @property
    def traits(self) -> Traits:
        return self._traits

    def parse_response(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        try:
            return self._parse(request, body)
        except ProviderError as error:
            self.redact(error)
            raise

    def classify_failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        error = self._failure(status, headers, body)
        self.redact(error)
        return error

    @abstractmethod
    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse: ...

    def _failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return failure(provider=self.provider, status=status, headers=headers, body=body)

    def redact(self, error: ProviderError) -> None:
        redact(error, self._known.secrets())
