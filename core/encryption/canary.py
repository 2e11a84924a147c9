"""The encryption canary: before serving, a process checks that it has its installation's encryption keys.

With other keys it could read no stored credential, and the others could not read what it saves.
"""

from __future__ import annotations

import logging
from typing import ClassVar

from django.db import DatabaseError, InterfaceError, connection, connections

from core.encryption.fernet import UndecryptableSecretError, decrypt, encrypt
from core.encryption.rotation import models_with_secrets
from core.models import EncryptionCanary

logger = logging.getLogger("core.canary")

_ROW = 1
_TEXT = "tweet"
# Stands in the place of the token while a restore goes on.
_UNFINISHED_RESTORE = "unfinished restore"
_LOOKED_AT = 100


class WrongKeysError(Exception):
    reason: ClassVar[str] = (
        "ENCRYPTION_KEYS has none of the keys that this installation's secrets are encrypted with. Give this host"
        " the ENCRYPTION_KEYS of the others. If those keys are lost for good, run"
        " `manage.py rotate_encryption_keys --accept-loss` with the new ones and enter the credentials again."
    )

    def __init__(self) -> None:
        super().__init__(self.reason)


class UnfinishedRestoreError(WrongKeysError):
    """A restore has not finished; no process may serve from the database."""

    reason = (
        "A restore into this database has not come to its end, so what was deleted may be there again: wait for it,"
        " or empty both stores and run `manage.py restore` anew."
    )


def check_canary() -> None:
    """Raises WrongKeysError for an unreadable canary, UnfinishedRestoreError during a restore, and django.db.Error if
    the database is unreachable or lacks the table.

    A missing canary passes: the first `serve` makes it.
    """
    token = EncryptionCanary.objects.filter(pk=_ROW).values_list("token", flat=True).first()
    if token is not None:
        check_token(token)


def check_canary_of_old_tables() -> None:
    if EncryptionCanary._meta.db_table in connection.introspection.table_names():
        check_canary()


def wrong_keys() -> str | None:
    """Returns the problem with this process's keys, or None; for processes that are started on their own.

    An unreachable database is no problem: a worker serves from its snapshots and reads no secret until it is back.
    """
    try:
        check_canary()
    except WrongKeysError as error:
        return str(error)
    except (DatabaseError, InterfaceError) as error:
        logger.warning("canary.unchecked error=%s", type(error).__name__)
    return None


def wrong_keys_by_own_connection() -> str | None:
    try:
        return wrong_keys()
    finally:
        connections.close_all()


def ensure_canary() -> None:
    """Checks the canary, and makes it if it is missing, under an installation lock.

    An installation older than canaries is checked by its other secrets: the first host with wrong keys must not make
    them the right ones.
    """
    if EncryptionCanary.objects.filter(pk=_ROW).exists():
        check_canary()
        return
    tokens = _stored_tokens()
    if tokens and not any(_is_readable(token) for token in tokens):
        raise WrongKeysError
    EncryptionCanary.objects.create(pk=_ROW, token=encrypt(_TEXT))


def replace_canary() -> None:
    EncryptionCanary.objects.update_or_create(pk=_ROW, defaults={"token": encrypt(_TEXT)})


def hold_back() -> str:
    """Makes every process refuse to serve until `release`. Returns the canary's token, empty without a canary."""
    held = EncryptionCanary.objects.filter(pk=_ROW)
    token = held.values_list("token", flat=True).first() or ""
    if not held.update(token=_UNFINISHED_RESTORE):
        EncryptionCanary.objects.create(pk=_ROW, token=_UNFINISHED_RESTORE)
    return token


def release(token: str) -> None:
    held = EncryptionCanary.objects.filter(pk=_ROW)
    if token:
        held.update(token=token)
    else:
        held.delete()


def check_token(token: str) -> None:
    if token == _UNFINISHED_RESTORE:
        raise UnfinishedRestoreError
    if not _is_readable(token):
        raise WrongKeysError


def _is_readable(token: str) -> bool:
    try:
        decrypt(token)
    except UndecryptableSecretError:
        return False
    return True


def _stored_tokens() -> list[str]:
    return [
        token
        for model in models_with_secrets()
        for name in getattr(model, "encrypted_fields", ())
        for token in model._base_manager.exclude(**{name: ""}).order_by("-pk").values_list(name, flat=True)[:_LOOKED_AT]
    ]
