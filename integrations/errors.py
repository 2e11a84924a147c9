"""The errors of the integrations app.

ApplicationError
├── ConflictError
│   ├── IntegrationExistsError       409 integration_exists
│   ├── TooManyPricesError           409 too_many_prices
│   ├── SyncRunningError             409 sync_running
│   └── SyncBrokenOffError           409 sync_broken_off
├── NotFoundError
│   ├── IntegrationNotFoundError     404 integration_not_found
│   └── PriceNotFoundError           404 price_not_found
├── ServiceUnavailableError
│   ├── MediaBusyError               503 service_unavailable
│   └── HealthUnavailableError       503 health_unavailable
└── ValidationError
    ├── UnknownProviderError         400 invalid_value
    └── MediaError                   400 invalid_value
"""

from __future__ import annotations

from core.errors import ConflictError, NotFoundError, ServiceUnavailableError, ValidationError


class UnknownProviderError(ValidationError):
    def __init__(self, provider: str) -> None:
        super().__init__(f"Unknown provider: {provider!r}", details={"provider": ["Unknown provider."]})
        self.provider = provider


class IntegrationExistsError(ConflictError):
    code = "integration_exists"


class IntegrationNotFoundError(NotFoundError):
    code = "integration_not_found"


class MediaError(ValidationError):
    """A file that a request names by its address cannot be fetched. `host` is the only part of the address in the
    message, since the other parts may hold a secret."""

    def __init__(self, host: str, problem: str) -> None:
        super().__init__(f"The file at {host} {problem}." if host else f"A file {problem}.")
        self.host = host


class MediaBusyError(ServiceUnavailableError):
    """The worker already fetches as many files at a time as it may."""


class HealthUnavailableError(ServiceUnavailableError):
    code = "health_unavailable"


class PriceNotFoundError(NotFoundError):
    code = "price_not_found"


class TooManyPricesError(ConflictError):
    code = "too_many_prices"


class SyncRunningError(ConflictError):
    code = "sync_running"


class SyncBrokenOffError(ConflictError):
    """Another run of the price sync has closed this one, because it took too long."""

    code = "sync_broken_off"
