from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar
from uuid import UUID

from django.db import DatabaseError

from core.audit.recording import Change, recording
from core.models import ApiKey, AuditEntry, Project

logger = logging.getLogger("core.audit")

Handler = TypeVar("Handler", bound=Callable[..., Any])

_MAX_SUMMARY, _MAX_LABEL, _MAX_ID = 500, 300, 200
_NAMED_FIELDS = 6


def write(
    changes: Iterable[Change], *, actor: str, via: str, operation: str, request_id: str = "", actor_id: str = ""
) -> None:
    """Appends one entry per change. `actor` is `user:<name>`, `key:<id>` or `command:<name>`.

    The change is already made, so a failed write is only logged.
    """
    kind, _, name = actor.partition(":")
    try:
        if kind == "key":
            actor_id, name = name, ApiKey.objects.filter(pk=int(name)).values_list("name", flat=True).first() or name
        changes = list(changes)
        known = _projects_there({change.project_id for change in changes})
        # With a project go the entries of its rows, those of its deletion itself apart.
        changes = [one for one in changes if one.project_id in {None, *known} or one.id == str(one.project_id)]
        AuditEntry.objects.bulk_create(
            AuditEntry(
                project_id=change.project_id if change.project_id in known else None,
                actor_kind=kind,
                actor_name=name[:_MAX_ID],
                actor_id=actor_id[:_MAX_ID],
                via=via,
                operation=operation,
                object_kind=change.kind,
                object_id=change.id[:_MAX_ID],
                object_label=change.label[:_MAX_LABEL],
                action=change.action,
                summary=summary_of(change),
                changes={name: [str_or_json(one) for one in pair] for name, pair in change.differences.items()},
                request_id=request_id,
            )
            for change in changes
        )
    except DatabaseError:
        logger.exception("audit.not_written operation=%s actor=%s", operation, actor)


def summary_of(change: Change) -> str:
    what = f"{change.kind.capitalize() if change.kind.islower() else change.kind} {change.label!r} {change.action}"
    names = [name.removeprefix("encrypted_").replace("_", " ") for name in change.differences]
    if change.action != "changed" or not names:
        return what[:_MAX_SUMMARY]
    more = f" and {len(names) - _NAMED_FIELDS} more" if len(names) > _NAMED_FIELDS else ""
    return f"{what}: {', '.join(names[:_NAMED_FIELDS])}{more}"[:_MAX_SUMMARY]


def str_or_json(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


def audited_command(handle: Handler) -> Handler:
    """Decorates a command's `handle`: its changes go to the audit log under the command's name."""

    @functools.wraps(handle)
    def recorded(self: Any, *args: Any, **options: Any) -> Any:
        name = type(self).__module__.rpartition(".")[2]
        with recording() as collected:
            result = handle(self, *args, **options)
        write_of_command(name, collected.made)
        return result

    return recorded  # type: ignore[return-value]  # a method of the same signature


def write_of_command(name: str, changes: Sequence[Change]) -> None:
    if changes:
        write(changes, actor=f"command:{name}", via=AuditEntry.Via.COMMAND, operation=name)


def _projects_there(ids: Iterable[UUID | None]) -> set[UUID]:
    chosen = [project_id for project_id in ids if project_id is not None]
    return set(Project.objects.filter(pk__in=chosen).values_list("pk", flat=True))
