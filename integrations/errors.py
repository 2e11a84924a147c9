from __future__ import annotations

from core.errors import ConflictError, NotFoundError, ServiceUnavailableError, ValidationError


class UnknownProviderError(ValidationError):
    def __init__(self, provider: str) -> None:
        super().__init__(f"Unknown provider: {provider!r}", details={"provider": ["Unknown provider."]})
        self.provider = provider


IntegrationExistsError = ConflictError.kind("integration_exists")
IntegrationNotFoundError = NotFoundError.kind("integration_not_found")


class MediaError(ValidationError):
    """A file that a request names by its address cannot be fetched. The message has only the `host`, since the rest of
    the address may hold a secret."""

    def __init__(self, host: str, problem: str) -> None:
        super().__init__(f"The file at {host} {problem}." if host else f"A file {problem}.")
        self.host = host


class MediaBusyError(ServiceUnavailableError):
    pass


HealthUnavailableError = ServiceUnavailableError.kind("health_unavailable")
PriceNotFoundError = NotFoundError.kind("price_not_found")
TooManyPricesError = ConflictError.kind("too_many_prices")
SyncRunningError = ConflictError.kind("sync_running")
# Another run of the price sync has closed this one, because it took too long.
SyncBrokenOffError = ConflictError.kind("sync_broken_off")
