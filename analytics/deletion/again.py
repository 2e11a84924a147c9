"""Erases deleted subjects again after a restore: a restored request log may be older than some deletions.

A closed deletion keeps only the SHA-256 of its id, so subjects are found in the log by their hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from analytics.clickhouse import client
from analytics.deletion.services import continue_deletion, forget_in_database
from analytics.models import Deletion, DeletionKind, DeletionState, Feedback, Score
from analytics.reconciliation.comparison import LIMITS
from core.models import Project

_AT_ONCE = 1_000
_SUBJECTS = {
    DeletionKind.SESSION: """
SELECT DISTINCT lower(hex(SHA256(session))) AS hash, session FROM (
    SELECT session_id AS session FROM requests WHERE project_id = {project:UUID} AND session_id != ''
    UNION ALL SELECT SessionId FROM otel_session_traces WHERE ProjectId = {project:UUID}
    UNION ALL SELECT SessionId FROM otel_session_spans WHERE ProjectId = {project:UUID}
    UNION ALL SELECT SessionId FROM otel_session_logs WHERE ProjectId = {project:UUID}
) WHERE hash IN {hashes:Array(String)}
""",
    DeletionKind.REQUEST: """
SELECT lower(hex(SHA256(toString(request_id)))) AS hash, toString(request_id) FROM requests
WHERE project_id = {project:UUID} AND hash IN {hashes:Array(String)}
""",
    DeletionKind.USER: """
SELECT DISTINCT lower(hex(SHA256(user_id))) AS hash, user_id FROM requests
WHERE project_id = {project:UUID} AND user_id != '' AND hash IN {hashes:Array(String)}
""",
}
_COPIES: dict[str, type[Score | Feedback]] = {"scores": Score, "feedback": Feedback}


@dataclass(frozen=True)
class Tombstone:
    id: UUID
    project_id: UUID
    kind: str
    subject_hash: str
    requested_by: str
    requested_at: datetime


def tombstones() -> Iterator[Tombstone]:
    names = Tombstone.__dataclass_fields__
    yield from (Tombstone(*row) for row in Deletion.objects.order_by("pk").values_list(*names).iterator())


def erase_again(found: Iterable[Tombstone], *, log: bool, done: Callable[[int], object]) -> int:
    """Erases these subjects, in the request log too with `log`, and records the deletions that this database lacks.

    Returns the number of requests erased. Raises the errors of the store.
    """
    projects = set(Project.objects.values_list("pk", flat=True))
    known = sorted({one for one in found if one.project_id in projects}, key=_group)
    requests = 0
    for (project_id, kind), group in groupby(known, key=_group):
        while some := list(islice(group, _AT_ONCE)):
            by_hash = {one.subject_hash: one for one in some}
            there = _find(project_id, DeletionKind(kind), list(by_hash)) if log and kind in _SUBJECTS else {}
            requests += _erase_some(project_id, DeletionKind(kind), by_hash, there)
            done(len(some))
    return requests


def withdraw_copies(since: datetime) -> int:
    """Deletes copies of scores and feedback that are not in the SQL database, and copies later changes again.

    Later means made or changed after `since`. Returns the number deleted. Raises the errors of the store.
    """
    deleted = 0
    for table, model in _COPIES.items():
        kept = set(model.objects.values_list("pk", flat=True))
        copied = {identifier for (identifier,) in client.execute(f"SELECT id FROM {table}", settings=LIMITS)}
        gone = [str(identifier) for identifier in copied - kept]
        for start in range(0, len(gone), _AT_ONCE):
            ids = {"ids": gone[start : start + _AT_ONCE]}
            client.execute(f"DELETE FROM {table} WHERE id IN {{ids:Array(UUID)}}", ids, settings=LIMITS)
        deleted += len(gone)
    # A row that is due later than it was made or changed is taken for one that is copied and waits for its request.
    Score.objects.filter(updated_at__gte=since).update(copy_due_at=F("updated_at"))
    Feedback.objects.filter(created_at__gte=since).update(copy_due_at=F("created_at"))
    return deleted


def _group(tombstone: Tombstone) -> tuple[UUID, str]:
    return tombstone.project_id, tombstone.kind


def _find(project_id: UUID, kind: DeletionKind, hashes: list[str]) -> dict[str, str]:
    values = {"project": project_id, "hashes": hashes}
    return dict(client.execute(_SUBJECTS[kind], values, settings=LIMITS))


def _erase_some(
    project_id: UUID, kind: DeletionKind, by_hash: Mapping[str, Tombstone], there: Mapping[str, str]
) -> int:
    count = 0
    for hashed, tombstone in by_hash.items():
        deletion = _write_down(tombstone, there.get(hashed))
        forget_in_database(deletion)
        if hashed in there:
            count += continue_deletion(deletion)
        elif deletion.references.exists():
            # The task of deletions looks for requests that quote it, when the store is there.
            state, look_at = DeletionState.ERASED, timezone.now()
            Deletion.objects.filter(pk=deletion.pk, state=DeletionState.CLOSED).update(state=state, look_at=look_at)
    return count


def _write_down(tombstone: Tombstone, subject: str | None) -> Deletion:
    """The deletion is reopened if its subject is in the store."""
    fresh = {**vars(tombstone), "state": DeletionState.CLOSED, "look_at": None}
    with transaction.atomic():
        deletion, _ = Deletion.objects.get_or_create(id=tombstone.id, defaults=fresh)
        if subject is not None:
            deletion.subject, deletion.state, deletion.look_at = subject, DeletionState.PENDING, timezone.now()
            deletion.save(update_fields=["subject", "state", "look_at"])
    return deletion
