"""Collects row changes while a call, form or command is served, and writes them to the audit log.

Signals of Django's models report changes. Bulk writes send no signals, so their services call `note`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Model
from django.db.models.signals import post_save, pre_delete, pre_save

from core.audit.subjects import SET, SET_ANEW, Subject, label_of, project_of, secrets_of, subject_of, values_of

CREATED, CHANGED, DELETED = "created", "changed", "deleted"

# An entry for each of thousands of rows, as the deletion of a project would make, is of no use to a reader. Whoever
# changes that many one by one says so.
MAX_ROWS = 100


@dataclass
class Change:
    kind: str
    id: str
    label: str
    project_id: UUID | None
    action: str
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

    @property
    def differences(self) -> dict[str, list[Any]]:
        names = dict.fromkeys([*self.before, *self.after])
        pairs = {name: [self.before.get(name), self.after.get(name)] for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1] and not all(map(_is_empty, pair))}

    @property
    def is_any(self) -> bool:
        return self.action != CHANGED or bool(self.differences)


def _is_empty(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


@dataclass
class Recording:
    changes: dict[tuple[str, str], Change] = field(default_factory=dict)
    max_rows: int = MAX_ROWS

    @property
    def is_full(self) -> bool:
        return len(self.changes) >= self.max_rows

    @property
    def made(self) -> list[Change]:
        return [change for change in self.changes.values() if change.is_any]


_current: ContextVar[Recording | None] = ContextVar("audit_recording", default=None)


@contextmanager
def recording(max_rows: int = MAX_ROWS) -> Iterator[Recording]:
    """Collects up to `max_rows` changes made in the block. Writes nothing."""
    collected = Recording(max_rows=max_rows)
    token = _current.set(collected)
    try:
        yield collected
    finally:
        _current.reset(token)


def note(change: Change) -> None:
    """Records a change that no signal reports. Values must be JSON without secrets."""
    collected = _current.get()
    if collected is not None and not collected.is_full:
        collected.changes[change.kind, change.id] = change


def connect() -> None:
    pre_save.connect(_before_save, dispatch_uid="core.audit.before_save")
    post_save.connect(_after_save, dispatch_uid="core.audit.after_save")
    pre_delete.connect(_before_delete, dispatch_uid="core.audit.before_delete")


def _before_save(sender: type[Model], instance: Model, **_: Any) -> None:
    collected, subject = _current.get(), subject_of(sender)
    if collected is None or subject is None or instance._state.adding:
        return
    stored = sender._base_manager.filter(pk=instance.pk).first()
    if stored is not None:
        _add(collected, subject, stored, CHANGED)


def _after_save(sender: type[Model], instance: Model, created: bool, **_: Any) -> None:
    collected, subject = _current.get(), subject_of(sender)
    if collected is None or subject is None:
        return
    change = _begun(collected, subject, instance) if created else _known(collected, subject, instance)
    if change is not None:
        change.after = {**values_of(subject, instance), **_shown_secrets(subject, instance, change)}
        change.label = label_of(subject, instance)


def _begun(collected: Recording, subject: Subject, row: Model) -> Change | None:
    if not subject.has_defaults:
        return _add(collected, subject, row, CREATED, is_new=True)
    change = _add(collected, subject, row, CHANGED, is_new=True)
    if change is not None:
        change.before = values_of(subject, type(row)())
    return change


def _before_delete(sender: type[Model], instance: Model, **_: Any) -> None:
    """When the first deletion of a cascade is announced, all its rows still exist."""
    collected, subject = _current.get(), subject_of(sender)
    if collected is None or subject is None:
        return
    change = _known(collected, subject, instance) or _add(collected, subject, instance, DELETED)
    if change is not None:
        change.action, change.after = DELETED, {}


def _known(collected: Recording, subject: Subject, row: Model) -> Change | None:
    return collected.changes.get((subject.kind, str(row.pk)))


def _add(collected: Recording, subject: Subject, row: Model, action: str, *, is_new: bool = False) -> Change | None:
    known = _known(collected, subject, row)
    if known is not None or collected.is_full:
        return known
    before = {} if is_new else {**values_of(subject, row), **_sealed(subject, row)}
    change = Change(subject.kind, str(row.pk), label_of(subject, row), project_of(subject, row), action, before)
    collected.changes[subject.kind, str(row.pk)] = change
    return change


def _sealed(subject: Subject, row: Model) -> dict[str, Any]:
    return {name: _Secret(value) for name, value in secrets_of(subject, row).items() if value}


def _shown_secrets(subject: Subject, row: Model, change: Change) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, value in secrets_of(subject, row).items():
        earlier = change.before.get(name)
        if value and isinstance(earlier, _Secret) and earlier.is_value(value):
            shown[name] = earlier
        elif value:
            shown[name] = SET if earlier is None else SET_ANEW
    return shown


class _Secret(str):
    __slots__ = ("_value",)

    _value: Any

    def __new__(cls, value: Any) -> _Secret:
        made = super().__new__(cls, SET)
        made._value = value
        return made

    def is_value(self, value: Any) -> bool:
        return bool(self._value == value)
