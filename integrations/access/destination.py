"""Stored credentials go only to the host that they were saved for, until they are entered again for another host."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from core.encryption.fernet import UndecryptableSecretError
from core.errors import ValidationError
from integrations.access.credentials import credentials_of, extra_names
from integrations.connectivity.calls import chat_address
from integrations.models import ProviderIntegration
from integrations.providers.errors import ProviderError
from integrations.transport.request_head import Origin, origin_of

_PROBLEM = "the stored credential was entered for another host: enter it again"


@dataclass(frozen=True, slots=True)
class Destination:
    """`origin` is None if it is unknown, because the credentials are incomplete or cannot be decrypted; then a change
    of any other setting counts as a new destination."""

    origin: Origin | None
    base_url: str
    options: dict[str, str]

    def is_left_for(self, other: Destination) -> bool:
        if self.origin is not None and other.origin is not None:
            return self.origin != other.origin
        return (self.base_url, self.options) != (other.base_url, other.options)


def destination_of(row: ProviderIntegration) -> Destination:
    try:
        origin = origin_of(chat_address(credentials_of(row)))
    except (ProviderError, UndecryptableSecretError):
        origin = None
    return Destination(origin, row.base_url, dict(row.options))


def stored_secrets(row: ProviderIntegration) -> set[str]:
    stored = {"api_key"} if row.encrypted_secret else set()
    if row.encrypted_extra:
        stored |= set(extra_names(row)) or {"secret_access_key"}
    if row.encrypted_headers:
        stored.add("extra_headers")
    return stored


def refuse_to_send_elsewhere(before: Destination, row: ProviderIntegration, kept: Collection[str]) -> None:
    """Raises ValidationError if the change would send the secrets in `kept`, which were not entered again, to another
    destination. It names the secrets and the changed setting."""
    after = destination_of(row)
    if not kept or not before.is_left_for(after):
        return
    names = {*before.options, *after.options}
    changed = sorted(name for name in names if before.options.get(name) != after.options.get(name))
    if before.base_url != after.base_url:
        changed.insert(0, "base_url")
    details = {name: [_PROBLEM] for name in (*changed, *sorted(kept))}
    raise ValidationError(f"{', '.join(details)}: {_PROBLEM}", details=details)
