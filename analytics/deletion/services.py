"""Deletes a session, a request, a data set's item or an end user: texts, and everything that identifies a person.

The deletion is stored first. From then on a session is hidden (`analytics.queries.visible`) and the caller has its
answer; the task `analytics.finish_deletions` erases it within seconds. An end user's data stays in sight until the task
has erased it. A request is erased before the caller has its answer; after a failure the same task continues. The task
also looks for late records for some days: they may have waited on a disk while the data was erased.

Whatever quotes the subject is deleted too: requests of judges and experiments (`analytics.deletion.references`), and
data of apps above (`analytics.deletion.signals`).

The anonymous account stays: time, model, tokens, cost, outcome. Sums of cost and budgets do not change.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from analytics.clickhouse import client
from analytics.datasets import erasure as datasets
from analytics.deletion.batches import delete_where, finish_batch, plan_batch, plan_quotes
from analytics.deletion.references import add_references
from analytics.deletion.signals import Erased, Quotes, subject_erased, subject_sought
from analytics.deletion.subject import Subject, request_subject, session_subject, subject_of, user_subject
from analytics.deletion.users import note_sessions
from analytics.discussions.services import delete_discussions_of, delete_discussions_of_hashes
from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError, RepairBusyError
from analytics.identifiers import arrival_of, id_hash
from analytics.models import Deletion, DeletionBatch, DeletionKind, DeletionState
from analytics.models.datasets import Dataset
from analytics.models.discussions import SubjectKind
from analytics.online_evaluations.services import forget_tasks_of
from analytics.queries import visible
from analytics.queries.held_users import held_data
from analytics.queries.telemetry import keyed_by
from analytics.reconciliation.comparison import LIMITS
from analytics.reconciliation.leases import repair_lease
from analytics.reviews.services import delete_items_of
from analytics.scores import selectors
from analytics.scores.services import delete_feedback_of_hash, delete_feedback_of_requests, delete_scores_of
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
_HASHES_AT_ONCE = 500
# Requests that have become anonymous do not name their traces any more, whose spans are deleted after them.
_NOTE_TRACES = """
INSERT INTO otel_session_traces (ProjectId, SessionId, TraceId, Timestamp, DropDate)
SELECT project_id, session_id, trace_id, min(r.ts), max(r.drop_date) FROM requests AS r
WHERE {requests} AND trace_id != '' GROUP BY project_id, session_id, trace_id
"""


def delete_session(project_id: UUID, session_id: str, *, actor: str) -> None:
    """Hides the session's data up to now before it returns; a task erases the data afterwards.

    Raises NotFoundError, and the errors of the store.
    """
    subject = session_subject(project_id, session_id, timezone.now())
    requests = _requests_of(subject)
    session_hash = id_hash(session_id)
    if not (
        requests
        or _has_telemetry(subject)
        or selectors.list_feedback(project_id, session_id).exists()
        or datasets.has_items_of_session(project_id, session_hash)
        or _is_kept(Erased(project_id, session_hash=session_hash, until=subject.parameters["until"]))
    ):
        raise _not_found(DeletionKind.SESSION)
    with transaction.atomic():
        deletion = _write_down(project_id, DeletionKind.SESSION, session_id, subject, actor=actor)
        forget_in_database(deletion)
        _forget_requests(deletion, requests)
    if len(selectors.list_sessions_being_deleted(project_id)) > _MAX_UNDER_WAY:
        _look(deletion, timezone.now())


def delete_request(project_id: UUID, request_id: UUID, *, actor: str) -> None:
    """Erases one request before it returns.

    Raises NotFoundError, and the errors of the store: a task then finishes the deletion.
    """
    subject = request_subject(project_id, request_id)
    subject_hash = id_hash(str(request_id))
    is_known = (
        bool(_requests_of(subject))
        or _has_telemetry(subject)
        or selectors.has_feedback_on_request(project_id, request_id)
        or datasets.has_items_of_request(project_id, request_id)
        or _is_kept(Erased(project_id, request_hashes={subject_hash}))
    )
    of_this = {"kind": DeletionKind.REQUEST, "subject_hash": subject_hash}
    deletion = Deletion.objects.for_project(project_id).filter(**of_this, state=DeletionState.PENDING).first()
    if deletion is None and not is_known:
        raise _not_found(DeletionKind.REQUEST)
    if deletion is None or is_known:
        with transaction.atomic():
            deletion = _write_down(project_id, DeletionKind.REQUEST, str(request_id), subject, actor=actor)
            # Requests that quote it may be there when it is not any more.
            add_references(deletion, [request_id], arrival_of(request_id) or deletion.project.created_at)
            forget_in_database(deletion)
    _look(deletion, timezone.now())


def delete_user(project_id: UUID, user_id: str, *, actor: str) -> Deletion:
    """Has a task erase the end user's requests and own sessions, and deletes settings that name the user at once.

    Returns the deletion that is under way, if there is one. Raises NotFoundError, and the errors of the store.
    """
    latest = selectors.latest_user_deletion(project_id, user_id)
    if latest is not None and latest.state == DeletionState.PENDING:
        return latest
    subject = user_subject(project_id, user_id, [], timezone.now())
    held = held_data(project_id, user_id, subject.parameters["until"])
    if not (held.request_count or _has_telemetry(subject) or _is_kept(Erased(project_id, user_hash=id_hash(user_id)))):
        raise _not_found(DeletionKind.USER)
    with transaction.atomic():
        deletion = _write_down(
            project_id, DeletionKind.USER, user_id, subject, actor=actor, expected=held.request_count
        )
        forget_in_database(deletion)
    return deletion


def delete_dataset_item(dataset: Dataset, item_id: UUID, *, actor: str) -> None:
    """Deletes an item from every version of its data set, and what quotes it.

    Texts in the database are gone when this returns, requests in the log within seconds. Raises
    DatasetItemNotFoundError.
    """
    with transaction.atomic():
        datasets.erase_item(dataset, item_id)
        nothing = Subject("", "", "", {})
        deletion = _write_down(dataset.project_id, DeletionKind.ITEM, str(item_id), nothing, actor=actor)
        add_references(deletion, [item_id], dataset.created_at)
        _tell(deletion, Erased(dataset.project_id, item_ids={item_id}))


def continue_deletion(deletion: Deletion) -> int:
    return _look(deletion, timezone.now())


def forget_in_database(deletion: Deletion) -> None:
    """Deletes the subject's data in the SQL database: feedback, comments, assignments, data set items, data of apps
    above.

    Of a session, only what it received before the deletion.
    """
    project_id, subject_hash = deletion.project_id, deletion.subject_hash
    if deletion.kind == DeletionKind.USER:
        _tell(deletion, Erased(project_id, user_hash=subject_hash))
    elif deletion.kind == DeletionKind.SESSION:
        _forget_session(deletion, subject_hash)
    elif deletion.kind == DeletionKind.REQUEST:
        delete_feedback_of_requests(project_id, [subject_hash])
        datasets.delete_items_of_request(project_id, subject_hash)
        _tell(deletion, Erased(project_id, request_hashes={subject_hash}))
        delete_discussions_of_hashes(project_id, SubjectKind.REQUEST, [subject_hash])


def _forget_session(deletion: Deletion, session_hash: str) -> None:
    project_id, until = deletion.project_id, deletion.requested_at
    delete_feedback_of_hash(project_id, session_hash)
    datasets.delete_items_of_session(project_id, session_hash, until)
    _tell(deletion, Erased(project_id, session_hash=session_hash, until=until))
    delete_discussions_of_hashes(project_id, SubjectKind.SESSION, [session_hash])


def is_any_due() -> bool:
    return Deletion.objects.filter(look_at__lte=timezone.now()).exists()


def finish_due(now: datetime | None = None) -> int:
    """Continues every due deletion and returns the number of requests found.

    Never raises for an unreachable store: the deletions wait.
    """
    moment = now or timezone.now()
    found = 0
    for deletion in Deletion.objects.filter(look_at__lte=moment).order_by("look_at")[:_DUE_AT_ONCE]:
        # A deletion that was carried out again may have something to search for that is new.
        is_over = moment - deletion.requested_at > _WATCHED_FOR
        if deletion.state == DeletionState.ERASED and is_over and not _has_news(deletion):
            _close(deletion)
            continue
        try:
            found += _look(deletion, moment)
        except (AnalyticsUnavailableError, AnalyticsLimitError, RepairBusyError) as error:
            Deletion.objects.filter(pk=deletion.pk).update(look_at=moment + _AGAIN_AFTER_FAILURE)
            logger.warning("deletion.postponed deletion_id=%s error=%s", deletion.pk, type(error).__name__)
    return found


def _write_down(
    project_id: UUID, kind: DeletionKind, subject_id: str, subject: Subject, *, actor: str, **more: Any
) -> Deletion:
    deletion = Deletion.objects.create(
        project_id=project_id,
        kind=kind,
        subject=subject_id,
        subject_hash=id_hash(subject_id),
        requested_by=actor,
        requested_at=subject.parameters.get("until", timezone.now()),
        **more,
    )
    logger.info("deletion.requested deletion_id=%s project_id=%s kind=%s", deletion.pk, project_id, kind.value)
    return deletion


def _not_found(kind: DeletionKind) -> NotFoundError:
    return NotFoundError(f"There is no such {kind.value} in this project.", code=f"{kind.value}_not_found")


def _requests_of(subject: Subject) -> list[UUID]:
    sql = f"SELECT request_id FROM requests WHERE {subject.requests} LIMIT {_MAX_REQUESTS_AT_ONCE}"
    return visible.query(sql, subject.parameters, row=UUID, name="deletion.requests", database_settings=LIMITS)


def _has_telemetry(subject: Subject) -> bool:
    return any(
        visible.query(
            f"SELECT 1 FROM {table} WHERE {where} LIMIT 1",
            subject.parameters,
            row=int,
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
    started = timezone.now()
    with repair_lease(deletion.project_id) as renew:
        found = 0
        sessions = note_sessions(deletion)
        subject = subject_of(deletion)
        # Batches of other deletions are finished too: a request must not be in two plans.
        for left in DeletionBatch.objects.filter(deletion__project=deletion.project_id).select_related("deletion"):
            _finish(left.deletion, left)
            renew()
        if subject.traces:
            noted = _NOTE_TRACES.format(requests=subject.requests)
            client.execute(noted, subject.parameters, settings=LIMITS, fresh=("requests",))
        _forget_late(deletion, sessions)
        while batch := plan_batch(deletion, subject) or plan_quotes(deletion, started):
            found += _finish(deletion, batch, is_first_try=True)
            renew()
        _delete_beside(subject)
    # Somebody may have written, or made an item, while the subject was being erased.
    _forget_late(deletion, sessions)
    erased_at = deletion.erased_at or now
    pause = min(max((now - deletion.requested_at) / 2, _FIRST_LOOK_AFTER), _MAX_INTERVAL)
    Deletion.objects.filter(pk=deletion.pk).update(
        state=DeletionState.ERASED, erased_at=erased_at, look_at=now + pause, looks=F("looks") + 1
    )
    if found or deletion.state == DeletionState.PENDING:
        logger.info("deletion.done deletion_id=%s requests=%d", deletion.pk, found)
    return found


def _forget_late(deletion: Deletion, sessions: Sequence[str]) -> None:
    """Deletes what the SQL database has received since the deletion. New data of a session that goes on stays.

    `sessions` are those of a user that were not known before.
    """
    for session in sessions:
        _forget_session(deletion, id_hash(session))
    if deletion.kind == DeletionKind.SESSION:
        until = deletion.requested_at
        datasets.delete_items_of_session(deletion.project_id, deletion.subject_hash, until)
        _tell(deletion, Erased(deletion.project_id, session_hash=deletion.subject_hash, until=until))
    elif deletion.kind == DeletionKind.REQUEST:
        forget_in_database(deletion)
    elif deletion.kind == DeletionKind.ITEM and deletion.subject:
        _tell(deletion, Erased(deletion.project_id, item_ids={UUID(deletion.subject)}))


def _forget_requests(deletion: Deletion, request_ids: Sequence[UUID | str]) -> None:
    # Tasks come before scores: one that is being stored is deleted then, and none comes after.
    forget_tasks_of(deletion.project_id, request_ids)
    delete_scores_of(deletion.project_id, request_ids)
    datasets.delete_items_of(deletion.project_id, request_ids)
    delete_discussions_of(deletion.project_id, SubjectKind.REQUEST, request_ids)
    for start in range(0, len(request_ids), _HASHES_AT_ONCE):
        hashes = {id_hash(str(request_id)) for request_id in request_ids[start : start + _HASHES_AT_ONCE]}
        delete_feedback_of_requests(deletion.project_id, hashes)
        _tell(deletion, Erased(deletion.project_id, request_hashes=hashes))


def _tell(deletion: Deletion, erased: Erased) -> None:
    with transaction.atomic():
        for _, quotes in subject_erased.send(Deletion, erased=erased):
            if isinstance(quotes, Quotes):
                add_references(deletion, quotes.references, quotes.since)


def _is_kept(erased: Erased) -> bool:
    return any(is_kept for _, is_kept in subject_sought.send(Deletion, erased=erased))


def _has_news(deletion: Deletion) -> bool:
    return deletion.references.filter(searched_at=None).exists()


def _finish(deletion: Deletion, batch: DeletionBatch, *, is_first_try: bool = False) -> int:
    _forget_requests(deletion, batch.plan["ids"])
    delete_items_of(deletion.project_id, batch.plan["ids"])
    count = finish_batch(batch, deletion.project_id, is_first_try=is_first_try)
    Deletion.objects.filter(pk=deletion.pk).update(requests=F("requests") + count)
    return count


def _delete_beside(subject: Subject) -> None:
    """Deletes spans and logs. Scores and feedback were deleted when the deletion was requested."""
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
    """No more records can arrive, so the ids of the subject and of what quoted it are erased too."""
    deletion.references.all().delete()
    Deletion.objects.filter(pk=deletion.pk).update(state=DeletionState.CLOSED, subject="", sessions=None, look_at=None)
    logger.info("deletion.closed deletion_id=%s", deletion.pk)
