"""Encryption at rest: Fernet (AES-128-CBC with HMAC-SHA-256) under the keys of ENCRYPTION_KEYS.

The first key encrypts and every key decrypts. To rotate, put a new key in front, and remove the old one after `rotate`
has passed over all rows.
"""

from __future__ import annotations

from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from core.errors import ApplicationError

# Raised when a stored secret was written under a key that is no longer configured, or was damaged.
UndecryptableSecretError = ApplicationError.kind(
    "undecryptable_secret", "A stored secret cannot be decrypted with the configured encryption keys."
)


def encrypt(plain: str) -> str:
    """Returns a different token each time, even for the same text."""
    return _cipher().encrypt(plain.encode()).decode("ascii")


def decrypt(token: str) -> str:
    """Raises UndecryptableSecretError if no key decrypts the token."""
    try:
        return _cipher().decrypt(token.encode()).decode()
    except InvalidToken:
        raise UndecryptableSecretError from None


def rotate(token: str) -> str:
    """Returns the secret under the first key, with its original timestamp. Raises UndecryptableSecretError."""
    try:
        return _cipher().rotate(token.encode()).decode("ascii")
    except InvalidToken:
        raise UndecryptableSecretError from None


def is_current(token: str) -> bool:
    try:
        _cipher_of((settings.ENCRYPTION_KEYS[0],)).decrypt(token.encode())
    except InvalidToken:
        return False
    return True


def _cipher() -> MultiFernet:
    return _cipher_of(tuple(settings.ENCRYPTION_KEYS))


@lru_cache(maxsize=4)
def _cipher_of(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])
