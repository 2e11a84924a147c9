"""Deletes a session or a request: its texts, and everything that identifies a person.

The request to delete is stored first. From then on nobody sees a session (`analytics.queries.visible`), and the caller
has its answer; the task `analytics.finish_deletions` erases it within seconds. A request is erased before the caller
has its answer; if something fails on the way, the same task continues. The task also looks for late records for some
days: they may have waited on a disk while the data was erased.

The anonymous account stays: time, model, tokens, cost, outcome. Sums of cost and budgets do not change.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from analytics.clickhouse import client
from analytics.datasets import erasure as datasets
from analytics.deletion.batches import delete_where, finish_batch, plan_batch
from analytics.deletion.subject import Subject, request_subject, session_subject, subject_of
from analytics.discussions.services import delete_discussions_of, delete_discussions_of_hashes
from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError, RepairBusyError
from analytics.identifiers import id_hash
from analytics.models import Deletion, DeletionBatch, DeletionKind, DeletionState
from analytics.models.discussions import SubjectKind
from analytics.queries import visible
from analytics.queries.telemetry import keyed_by
from analytics.reconciliation.comparison import LIMITS
from analytics.reconciliation.leases import repair_lease
from analytics.reviews.services import delete_items_of
from analytics.scores import selectors
from analytics.scores.services import delete_feedback_of_hash, delete_scores_of
from core.errors import NotFoundError

logger = logging.getLogger("analytics.deletion")

# Late records are looked for during this time. A spool is shipped within seconds, or within days when the store was
# away.
_WATCHED_FOR = timedelta(days=7)
_FIRST_LOOK_AFTER = timedelta(seconds=2)
_MAX_INTERVAL = timedelta(minutes=30)
_AGAIN_AFTER_FAILURE = timedelta(minutes=1)
_DUE_AT_ONCE = 200
# Every query of a project names the sessions that it leaves out, so a client that deletes faster than that has to wait.
_MAX_UNDER_WAY = 200
# Up to this many requests of a session lose their scores before the answer; the others when they are erased.
_MAX_REQUESTS_AT_ONCE = 10_000
# Requests that have become anonymous do not name their traces any more, whose spans are deleted after them.
_NOTE_TRACES = """
INSERT INTO otel_session_traces (ProjectId, SessionId, TraceId, Timestamp, DropDate)
SELECT project_id, session_id, trace_id, min(r.ts), max(r.drop_date) FROM requests AS r
WHERE {requests} AND trace_id != '' GROUP BY project_id, session_id, trace_id
"""


def delete_session(project_id: UUID, session_id: str, *, actor: str) -> None:
    """Deletes the session's data up to now: it is hidden when this returns, and erased afterwards.

    Raises NotFoundError, and the errors of the store.
    """
    subject = session_subject(project_id, session_id, timezone.now())
    requests = _requests_of(subject)
    if not (
        requests
        or _has_telemetry(subject)
        or selectors.list_feedback(project_id, session_id).exists()
        or datasets.has_items_of_session(project_id, id_hash(session_id))
    ):
        raise _not_found(DeletionKind.SESSION)
    with transaction.atomic():
        deletion = _write_down(project_id, DeletionKind.SESSION, session_id, subject, actor=actor)
        forget_in_database(project_id, DeletionKind.SESSION, deletion.subject_hash, deletion.requested_at)
        delete_scores_of(project_id, requests)
        datasets.delete_items_of(project_id, requests)
        delete_discussions_of(project_id, SubjectKind.REQUEST, requests)
    if len(selectors.list_sessions_being_deleted(project_id)) > _MAX_UNDER_WAY:
        _look(deletion, timezone.now())


def delete_request(project_id: UUID, request_id: UUID, *, actor: str) -> None:
    """Deletes one request, which is erased when this returns. Raises NotFoundError, and the errors of the store: the
    deletion is finished in the background then."""
    subject = request_subject(project_id, request_id)
    is_known = (
        bool(_requests_of(subject)) or _has_telemetry(subject) or datasets.has_items_of_request(project_id, request_id)
    )
    of_this = {"kind": DeletionKind.REQUEST, "subject_hash": id_hash(str(request_id))}
    deletion = Deletion.objects.for_project(project_id).filter(**of_this, state=DeletionState.PENDING).first()
    if deletion is None and not is_known:
        raise _not_found(DeletionKind.REQUEST)
    if deletion is None or is_known:
        deletion = _write_down(project_id, DeletionKind.REQUEST, str(request_id), subject, actor=actor)
    _look(deletion, timezone.now())


def continue_deletion(deletion: Deletion) -> int:
    """Erases what there is of the subject now; returns the number of its requests. Raises the errors of the store."""
    return _look(deletion, timezone.now())


def forget_in_database(project_id: UUID, kind: DeletionKind, subject_hash: str, until: datetime) -> None:
    """Deletes what the SQL database itself has of a subject: feedback on a session, comments, assignments, and items
    of data sets; those of a session's requests up to a moment."""
    if kind == DeletionKind.SESSION:
        delete_feedback_of_hash(project_id, subject_hash)
        datasets.delete_items_of_session(project_id, subject_hash, until)
    else:
        datasets.delete_items_of_request(project_id, subject_hash)
    delete_discussions_of_hashes(project_id, SubjectKind(kind.value), [subject_hash])


def finish_due(now: datetime | None = None) -> int:
    """Continues every deletion that is due; returns the number of requests found. It never raises for a store that is
    away: the deletions wait."""
    moment = now or timezone.now()
    found = 0
    for deletion in Deletion.objects.filter(look_at__lte=moment).order_by("look_at")[:_DUE_AT_ONCE]:
        if deletion.state == DeletionState.ERASED and moment - deletion.requested_at > _WATCHED_FOR:
            _close(deletion)
            continue
        try:
            found += _look(deletion, moment)
        except (AnalyticsUnavailableError, AnalyticsLimitError, RepairBusyError) as error:
            Deletion.objects.filter(pk=deletion.pk).update(look_at=moment + _AGAIN_AFTER_FAILURE)
            logger.warning("deletion.postponed deletion_id=%s error=%s", deletion.pk, type(error).__name__)
    return found


def _write_down(project_id: UUID, kind: DeletionKind, subject_id: str, subject: Subject, *, actor: str) -> Deletion:
    deletion = Deletion.objects.create(
        project_id=project_id,
        kind=kind,
        subject=subject_id,
        subject_hash=id_hash(subject_id),
        requested_by=actor,
        requested_at=subject.parameters.get("until", timezone.now()),
    )
    logger.info("deletion.requested deletion_id=%s project_id=%s kind=%s", deletion.pk, project_id, kind.value)
    return deletion


def _not_found(kind: DeletionKind) -> NotFoundError:
    return NotFoundError(f"There is no such {kind.value} in this project.", code=f"{kind.value}_not_found")


@dataclass(frozen=True)
class _Request:
    request_id: UUID


@dataclass(frozen=True)
class _Found:
    found: int


def _requests_of(subject: Subject) -> list[UUID]:
    """Returns the ids of the subject's visible requests, up to a maximum."""
    sql = f"SELECT request_id FROM requests WHERE {subject.requests} LIMIT {_MAX_REQUESTS_AT_ONCE}"
    rows = visible.query(sql, subject.parameters, row=_Request, name="deletion.requests", database_settings=LIMITS)
    return [row.request_id for row in rows]


def _has_telemetry(subject: Subject) -> bool:
    return any(
        visible.query(
            f"SELECT 1 AS found FROM {table} WHERE {where} LIMIT 1",
            subject.parameters,
            row=_Found,
            name="deletion.telemetry",
            database_settings=LIMITS,
        )
        for table, where in (
            ("otel_traces", subject.spans),
            ("otel_logs", subject.logs),
            ("otel_session_traces", subject.traces),
        )
        if where
    )


def _look(deletion: Deletion, now: datetime) -> int:
    """Erases the subject's data that exists now; returns the number of its requests."""
    with repair_lease(deletion.project_id) as renew:
        found = 0
        subject = subject_of(deletion)
        # Batches of other deletions are finished too: a request must not be in two plans.
        for left in DeletionBatch.objects.filter(deletion__project=deletion.project_id).select_related("deletion"):
            _finish(left.deletion, left)
            renew()
        if subject.traces:
            noted = _NOTE_TRACES.format(requests=subject.requests)
            client.execute(noted, subject.parameters, settings=LIMITS, fresh=("requests",))
        while batch := plan_batch(deletion, subject):
            found += _finish(deletion, batch, is_first_try=True)
            renew()
        _delete_beside(subject)
    # Somebody may have written, or made an item, while the subject was being erased.
    if deletion.kind == DeletionKind.REQUEST:
        delete_discussions_of(deletion.project_id, SubjectKind.REQUEST, [deletion.subject])
        datasets.delete_items_of_request(deletion.project_id, deletion.subject_hash)
    else:
        datasets.delete_items_of_session(deletion.project_id, deletion.subject_hash, deletion.requested_at)
    erased_at = deletion.erased_at or now
    pause = min(max((now - deletion.requested_at) / 2, _FIRST_LOOK_AFTER), _MAX_INTERVAL)
    Deletion.objects.filter(pk=deletion.pk).update(
        state=DeletionState.ERASED, erased_at=erased_at, look_at=now + pause, looks=F("looks") + 1
    )
    if found or deletion.state == DeletionState.PENDING:
        logger.info("deletion.done deletion_id=%s requests=%d", deletion.pk, found)
    return found


def _finish(deletion: Deletion, batch: DeletionBatch, *, is_first_try: bool = False) -> int:
    delete_scores_of(deletion.project_id, batch.plan["ids"])
    delete_items_of(deletion.project_id, batch.plan["ids"])
    datasets.delete_items_of(deletion.project_id, batch.plan["ids"])
    delete_discussions_of(deletion.project_id, SubjectKind.REQUEST, batch.plan["ids"])
    count = finish_batch(batch, deletion.project_id, is_first_try=is_first_try)
    Deletion.objects.filter(pk=deletion.pk).update(requests=F("requests") + count)
    return count


def _delete_beside(subject: Subject) -> None:
    """Deletes the subject's spans and logs. Its scores and feedback were deleted when the deletion was asked for."""
    for table, keys, where in (
        ("otel_traces", "otel_session_spans", subject.spans),
        ("otel_logs", "otel_session_logs", subject.logs),
    ):
        if where:
            _delete_records(table, keys, where, subject.parameters)
    if subject.traces:
        for table, keys, trace_keys in (
            ("otel_traces", "otel_session_spans", "otel_trace_spans"),
            ("otel_logs", "otel_session_logs", "otel_trace_logs"),
        ):
            _delete_records(table, keys, keyed_by(trace_keys, subject.of_traces), subject.parameters)
            delete_where(trace_keys, subject.of_traces, subject.parameters)
        delete_where("otel_session_traces", subject.traces, subject.parameters)


def _delete_records(table: str, keys: str, where: str, parameters: dict[str, Any]) -> None:
    # The keys are read first, since the rows that name them are deleted next.
    of_them = f"(Timestamp, RecordId) IN (SELECT Timestamp, RecordId FROM {table} WHERE {where})"
    delete_where(keys, f"ProjectId = {{project:UUID}} AND {of_them}", parameters)
    delete_where(table, where, parameters)


def _close(deletion: Deletion) -> None:
    """Closes the deletion: no more records can arrive, so that its id is erased too."""
    Deletion.objects.filter(pk=deletion.pk).update(state=DeletionState.CLOSED, subject="", look_at=None)
    logger.info("deletion.closed deletion_id=%s", deletion.pk)
