"""The encryption canary: a process checks before it serves that it has the encryption keys of its installation.

With other keys every stored credential is unreadable, and what such a process saves is unreadable to the others.
"""

from __future__ import annotations

import logging
from typing import ClassVar

from django.db import DatabaseError, InterfaceError, connection, connections

from core.encryption.fernet import UndecryptableError, decrypt, encrypt
from core.encryption.rotation import models_with_secrets
from core.models import EncryptionCanary

logger = logging.getLogger("core.canary")

_ROW = 1
_TEXT = "tweet"
# Stands in the place of the token while a restore goes on.
_UNFINISHED_RESTORE = "unfinished restore"
_LOOKED_AT = 100


class WrongKeysError(Exception):
    """Raised when stored secrets were encrypted under keys that ENCRYPTION_KEYS does not name."""

    reason: ClassVar[str] = (
        "ENCRYPTION_KEYS has none of the keys that this installation's secrets are encrypted with. Give this host"
        " the ENCRYPTION_KEYS of the others. If those keys are lost for good, run"
        " `manage.py rotate_encryption_keys --accept-loss` with the new ones and enter the credentials again."
    )

    def __init__(self) -> None:
        super().__init__(self.reason)


class UnfinishedRestoreError(WrongKeysError):
    """Raised while a restore has not come to its end: the database is nobody's to serve with."""

    reason = (
        "A restore into this database has not come to its end, so what was deleted may be there again: wait for it,"
        " or empty both stores and run `manage.py restore` anew."
    )


def check_canary() -> None:
    """Raises WrongKeysError when the canary cannot be read, UnfinishedRestoreError while a restore goes on, and
    django.db.Error when the database is unreachable or lacks the table. A missing canary passes: the first `serve`
    makes it."""
    token = EncryptionCanary.objects.filter(pk=_ROW).values_list("token", flat=True).first()
    if token is not None:
        check_token(token)


def check_canary_of_old_tables() -> None:
    """Raises as `check_canary` does, before tables are migrated; a database without the table passes."""
    if EncryptionCanary._meta.db_table in connection.introspection.table_names():
        check_canary()


def wrong_keys() -> str | None:
    """Returns the problem with this process's keys, or None; for processes that are started on their own.

    A database that is unreachable decides nothing: a worker serves from its snapshots, and reads no secret before the
    database is back.
    """
    try:
        check_canary()
    except WrongKeysError as error:
        return str(error)
    except (DatabaseError, InterfaceError) as error:
        logger.warning("canary.unchecked error=%s", type(error).__name__)
    return None


def wrong_keys_by_own_connection() -> str | None:
    """Calls `wrong_keys` and closes the connection, for a thread that does not use the database otherwise."""
    try:
        return wrong_keys()
    finally:
        connections.close_all()


def ensure_canary() -> None:
    """Checks the canary, and makes the row when there is none, under an installation lock.

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
    """Replaces the canary by one under the present keys, even if other secrets cannot be read any more."""
    EncryptionCanary.objects.update_or_create(pk=_ROW, defaults={"token": encrypt(_TEXT)})


def hold_back() -> str:
    """Has every process refuse to serve until `release`. Returns the canary's token, empty for none."""
    held = EncryptionCanary.objects.filter(pk=_ROW)
    token = held.values_list("token", flat=True).first() or ""
    if not held.update(token=_UNFINISHED_RESTORE):
        EncryptionCanary.objects.create(pk=_ROW, token=_UNFINISHED_RESTORE)
    return token


def release(token: str) -> None:
    """Ends `hold_back`, which returned the token."""
    held = EncryptionCanary.objects.filter(pk=_ROW)
    if token:
        held.update(token=token)
    else:
        held.delete()


def check_token(token: str) -> None:
    """Raises WrongKeysError when a canary's token cannot be read."""
    if token == _UNFINISHED_RESTORE:
        raise UnfinishedRestoreError
    if not _is_readable(token):
        raise WrongKeysError


def _is_readable(token: str) -> bool:
    try:
        decrypt(token)
    except UndecryptableError:
        return False
    return True


def _stored_tokens() -> list[str]:
    """Returns the newest stored secrets, a few of each model."""
    return [
        token
        for model in models_with_secrets()
        for name in getattr(model, "encrypted_fields", ())
        for token in model._base_manager.exclude(**{name: ""}).order_by("-pk").values_list(name, flat=True)[:_LOOKED_AT]
    ]
