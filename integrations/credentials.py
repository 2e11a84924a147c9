"""A stored integration into the frozen credentials that adapters take, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping

from core.crypto import decrypt, encrypt
from integrations.models import ProviderIntegration
from integrations.providers.base import Credentials

MASK = "****"
# A key this short would be mostly shown by its tail.
_SHORTEST_SHOWN = 12


def credentials_of(row: ProviderIntegration) -> Credentials:
    """Raises core.crypto.UndecryptableError."""
    extra = {name: str(value) for name, value in row.options.items()}
    if row.encrypted_extra:
        extra |= json.loads(decrypt(row.encrypted_extra))
    return Credentials(
        integration_id=row.pk,
        provider=row.provider,
        base_url=row.base_url,
        secret=decrypt(row.encrypted_secret) if row.encrypted_secret else "",
        extra=extra,
    )


def store_secret(row: ProviderIntegration, secret: str) -> None:
    """Sets the encrypted key and its visible tail; the row is not saved."""
    row.encrypted_secret = encrypt(secret) if secret else ""
    row.secret_tail = secret[-4:] if len(secret) >= _SHORTEST_SHOWN else ""


def store_extra(row: ProviderIntegration, extra: Mapping[str, str]) -> None:
    """Adds secret fields to those stored; the row is not saved."""
    stored: dict[str, str] = json.loads(decrypt(row.encrypted_extra)) if row.encrypted_extra else {}
    row.encrypted_extra = encrypt(json.dumps({**stored, **extra}))


def masked(row: ProviderIntegration) -> str:
    """What lists and forms show for the key: `****abcd`, empty when none is stored."""
    return f"{MASK}{row.secret_tail}" if row.encrypted_secret or row.encrypted_extra else ""


def is_masked(value: str) -> bool:
    """Whether a client wrote back what a list had shown: then the stored secret stays."""
    return value.startswith(MASK) and len(value) <= len(MASK) + 4
