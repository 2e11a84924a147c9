"""Encryption at rest: Fernet (AES-128-CBC with HMAC-SHA-256) under the keys of ENCRYPTION_KEYS.

The first key encrypts and every key decrypts, so a new key is put in front and the old one removed after `rotate`
has passed over all rows.
"""

from __future__ import annotations

from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from core.errors import ApplicationError


class UndecryptableError(ApplicationError):
    """Raised when a stored secret was written under a key that is no longer configured, or was damaged."""

    code = "undecryptable_secret"

    def __init__(self) -> None:
        super().__init__("A stored secret cannot be decrypted with the configured encryption keys.")


def encrypt(plain: str) -> str:
    """Returns the token to store; the same text gives a different token each time."""
    return _cipher().encrypt(plain.encode()).decode("ascii")


def decrypt(token: str) -> str:
    """Returns the text of a stored token. Raises UndecryptableError."""
    try:
        return _cipher().decrypt(token.encode()).decode()
    except InvalidToken:
        raise UndecryptableError from None


def rotate(token: str) -> str:
    """Returns the same secret under the first key, with its time of writing. Raises UndecryptableError."""
    try:
        return _cipher().rotate(token.encode()).decode("ascii")
    except InvalidToken:
        raise UndecryptableError from None


def is_current(token: str) -> bool:
    """Returns whether the first key alone decrypts the token."""
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
