from __future__ import annotations

import json
from collections.abc import Mapping

from core.encryption.fernet import UndecryptableSecretError, decrypt, encrypt
from integrations.models import ProviderIntegration
from integrations.providers.base import Credentials
from integrations.registry import is_known, traits_of

MASK = "****"
# The tail of a shorter key would show most of the key, so nothing of it is shown.
_MIN_SHOWN = 12


def credentials_of(row: ProviderIntegration) -> Credentials:
    extra = {name: str(value) for name, value in row.options.items()}
    if row.encrypted_extra:
        extra |= json.loads(decrypt(row.encrypted_extra))
    return Credentials(
        integration_id=row.pk,
        provider=row.provider,
        base_url=row.base_url,
        secret=decrypt(row.encrypted_secret) if row.encrypted_secret else "",
        extra=extra,
        default_parameters=row.default_parameters,
        forced_parameters=row.forced_parameters,
        extra_headers=stored_headers(row),
        forward_headers=forwarded_names(row),
        own_account=row.own_account,
    )


def store_secret(row: ProviderIntegration, secret: str) -> None:
    row.encrypted_secret = encrypt(secret) if secret else ""
    shown = len(secret) >= _MIN_SHOWN and not is_service_account(secret)
    row.secret_tail = secret[-4:] if shown else ""


def store_extra(row: ProviderIntegration, extra: Mapping[str, str]) -> None:
    try:
        kept = _stored_extra(row)
    except UndecryptableSecretError:
        kept = {}  # The stored fields cannot be decrypted and are lost in any case, so the new fields replace them.
    stored = {name: value for name, value in {**kept, **extra}.items() if value}
    row.encrypted_extra = encrypt(json.dumps(stored)) if stored else ""


def store_headers(row: ProviderIntegration, headers: Mapping[str, str]) -> None:
    row.encrypted_headers = encrypt(json.dumps(headers)) if headers else ""


def stored_headers(row: ProviderIntegration) -> dict[str, str]:
    stored: dict[str, str] = json.loads(decrypt(row.encrypted_headers)) if row.encrypted_headers else {}
    return stored


def masked_headers(row: ProviderIntegration) -> dict[str, str]:
    """Maps the names of the stored headers to the mask; empty if they cannot be decrypted."""
    try:
        return dict.fromkeys(stored_headers(row), MASK)
    except UndecryptableSecretError:
        return {}


def forwarded_names(row: ProviderIntegration) -> tuple[str, ...]:
    if row.forward_headers is not None:
        return tuple(row.forward_headers)
    return traits_of(row.provider).forward_headers if is_known(row.provider) else ()


def extra_names(row: ProviderIntegration) -> tuple[str, ...]:
    try:
        return tuple(_stored_extra(row))
    except UndecryptableSecretError:
        return ()


def is_usable(row: ProviderIntegration) -> bool:
    try:
        credentials_of(row)
    except UndecryptableSecretError:
        return False
    return True


def is_service_account(secret: str) -> bool:
    return secret.lstrip()[:1] == "{"


def _stored_extra(row: ProviderIntegration) -> dict[str, str]:
    stored: dict[str, str] = json.loads(decrypt(row.encrypted_extra)) if row.encrypted_extra else {}
    return stored


def masked(row: ProviderIntegration) -> str:
    """Returns what lists and forms show for the key: `****abcd`, empty if no key is stored."""
    return f"{MASK}{row.secret_tail}" if row.encrypted_secret or row.encrypted_extra else ""


def is_masked(value: str) -> bool:
    """Recognizes a masked key that a client sends back; the stored secret then stays."""
    return value.startswith(MASK) and len(value) <= len(MASK) + 4
