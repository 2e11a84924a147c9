"""Re-encrypts every stored secret under the first encryption key.

Models name their columns of tokens: `encrypted_fields = ("token",)`. An empty column holds none.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db.models import Model

from core.encryption.fernet import UndecryptableSecretError, is_current, rotate

logger = logging.getLogger("core.rotation")

_BATCH = 500
# Rows that change during a pass are read again in the next one.
_LOOKS = 5


@dataclass(slots=True)
class Rotation:
    """The result for one model. `lost` has the ids of rows that no key decrypts; `projects` counts rotated secrets by
    project, under None for those without one."""

    model: str
    current: int = 0
    rotated: int = 0
    lost: list[Any] = field(default_factory=list)
    projects: Counter[UUID | None] = field(default_factory=Counter)


def models_with_secrets() -> list[type[Model]]:
    return [model for model in apps.get_models() if getattr(model, "encrypted_fields", ())]


def rotate_all(*, dry_run: bool = False) -> list[Rotation]:
    """Re-encrypts all rows in the order of their ids.

    A secret is replaced only if it is still the one that was read, so runs may be stopped, repeated, and run beside
    each other and beside changes. `dry_run` writes nothing; `rotated` then counts the rows that would change.
    """
    return [_rotate_model(model, dry_run=dry_run) for model in models_with_secrets()]


def _rotate_model(model: type[Model], *, dry_run: bool) -> Rotation:
    found = Rotation(model._meta.label)
    for primary_key in _ids(model):
        for name in getattr(model, "encrypted_fields", ()):
            _rotate_one(model, primary_key, name, found, dry_run=dry_run)
    logger.info(
        "encryption.rotated model=%s rotated=%d current=%d lost=%d dry_run=%s",
        found.model, found.rotated, found.current, len(found.lost), dry_run,
    )  # fmt: skip
    return found


def _ids(model: type[Model]) -> Iterator[Any]:
    rows, last = model._base_manager.order_by("pk"), None
    while True:
        batch = list((rows if last is None else rows.filter(pk__gt=last)).values_list("pk", flat=True)[:_BATCH])
        yield from batch
        if len(batch) < _BATCH:
            return
        last = batch[-1]


def _rotate_one(model: type[Model], primary_key: Any, name: str, found: Rotation, *, dry_run: bool) -> None:
    for _ in range(_LOOKS):
        token = model._base_manager.filter(pk=primary_key).values_list(name, flat=True).first()
        if not token:
            return  # The column is empty, or the row was deleted.
        if is_current(token):
            found.current += 1
            return
        try:
            fresh = rotate(token)
        except UndecryptableSecretError:
            _lost(found, primary_key)
            return
        if dry_run or model._base_manager.filter(pk=primary_key, **{name: token}).update(**{name: fresh}):
            found.rotated += 1
            found.projects[_project_of(model, primary_key)] += 1
            return
    logger.warning("encryption.restless model=%s id=%s", found.model, primary_key)


def _project_of(model: type[Model], primary_key: Any) -> UUID | None:
    if not any(column.name == "project" for column in model._meta.fields):
        return None
    return model._base_manager.filter(pk=primary_key).values_list("project_id", flat=True).first()


def _lost(found: Rotation, primary_key: Any) -> None:
    if primary_key not in found.lost:
        found.lost.append(primary_key)
        logger.warning("encryption.lost model=%s id=%s", found.model, primary_key)
