from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Avg, Q, QuerySet

from analytics.identifiers import canonical_request_id, id_hash
from analytics.models import Deletion, DeletionKind, DeletionState, Feedback, Score
from core.chunks import chunks


def list_scores(project_id: UUID) -> QuerySet[Score]:
    return Score.objects.for_project(project_id).order_by("-created_at", "-id")


def list_scores_of(project_id: UUID, request_id: str) -> QuerySet[Score]:
    return list_scores(project_id).filter(request_id=canonical_request_id(request_id))


def scores_by_request(project_id: UUID, request_ids: Collection[str]) -> Mapping[str, Sequence[Score]]:
    found: dict[str, list[Score]] = {}
    if request_ids:
        for score in list_scores(project_id).filter(request_id__in=request_ids):
            found.setdefault(score.request_id, []).append(score)
    return found


def list_feedback(project_id: UUID, session_id: str) -> QuerySet[Feedback]:
    return feedback_of_sessions(project_id, [session_id])


def feedback_of_sessions(project_id: UUID, session_ids: Iterable[str]) -> QuerySet[Feedback]:
    hashes = [id_hash(session_id) for session_id in session_ids]
    return Feedback.objects.for_project(project_id).filter(session_hash__in=hashes).order_by("-created_at", "-id")


def list_feedback_of_request(project_id: UUID, session_id: str, request_id: UUID) -> QuerySet[Feedback]:
    return list_feedback(project_id, session_id).filter(request_hash=id_hash(str(request_id)))


def has_feedback_on_request(project_id: UUID, request_id: UUID) -> bool:
    return Feedback.objects.for_project(project_id).filter(request_hash=id_hash(str(request_id))).exists()


def is_deleted(project_id: UUID, session_id: str, request_id: UUID, made_at: datetime) -> bool:
    """Whether the request was deleted, by itself or with its session; `made_at` is the request's time."""
    alone = Q(kind=DeletionKind.REQUEST, subject_hash=id_hash(str(request_id)))
    with_session = Q(kind=DeletionKind.SESSION, subject_hash=id_hash(session_id), requested_at__gte=made_at)
    return Deletion.objects.for_project(project_id).filter(alone | with_session).exists()


def feedback_scores(project_id: UUID, session_ids: Iterable[str]) -> Mapping[str, float]:
    by_hash = {id_hash(session_id): session_id for session_id in session_ids}
    hashes = list(by_hash)
    scored = Feedback.objects.for_project(project_id).filter(score__isnull=False).order_by()
    means: dict[str, float] = {}
    for some in chunks(hashes):
        found = scored.filter(session_hash__in=some).values_list("session_hash").annotate(mean=Avg("score"))
        means.update({by_hash[key]: float(mean) for key, mean in found})
    return means


def latest_user_deletion(project_id: UUID, user_id: str) -> Deletion | None:
    of_this = {"kind": DeletionKind.USER, "subject_hash": id_hash(user_id)}
    return Deletion.objects.for_project(project_id).filter(**of_this).order_by("-requested_at").first()


def list_sessions_being_deleted(project_id: UUID) -> Mapping[str, datetime]:
    """Maps session ids to the time up to which their records are deleted."""
    under_way = Deletion.objects.for_project(project_id).filter(kind=DeletionKind.SESSION, state=DeletionState.PENDING)
    return dict(under_way.order_by("requested_at").values_list("subject", "requested_at"))
