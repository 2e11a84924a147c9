"""Failures of the integrations app."""

from __future__ import annotations

from core.errors import ConflictError, NotFoundError, ValidationError


class UnknownProviderError(ValidationError):
    def __init__(self, provider: str) -> None:
        super().__init__(f"Unknown provider: {provider!r}", details={"provider": ["Unknown provider."]})
        self.provider = provider


class IntegrationExistsError(ConflictError):
    code = "integration_exists"


class IntegrationNotFoundError(NotFoundError):
    code = "integration_not_found"
