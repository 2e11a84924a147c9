from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from analytics.discussions.errors import SubjectNotFoundError
from analytics.identifiers import id_hash
from analytics.models.discussions import SubjectKind
from analytics.queries.lookup import find_session
from analytics.queries.requests import get_request_time
from analytics.queries.traces import has_traces


@dataclass(frozen=True, slots=True)
class Subject:
    """`id` is in lower case for a request."""

    kind: SubjectKind
    id: str

    @property
    def hash(self) -> str:
        return id_hash(self.id)

    @property
    def columns(self) -> dict[str, str]:
        return {"kind": self.kind, "subject_hash": self.hash}


def subject_request(request_id: UUID) -> Subject:
    return Subject(SubjectKind.REQUEST, str(request_id))


def subject_session(session_id: str) -> Subject:
    return Subject(SubjectKind.SESSION, session_id)


def time_of(project_id: UUID, subject: Subject) -> datetime:
    """Returns the time from which the project's retention counts for a new row about the subject.

    Raises SubjectNotFoundError, and the errors of the store.
    """
    if subject.kind == SubjectKind.REQUEST:
        made_at = get_request_time(project_id, UUID(subject.id))
    else:
        is_stored = find_session(project_id, subject.id) or has_traces(project_id, subject.id)
        made_at = timezone.now() if is_stored else None
    if made_at is None:
        raise SubjectNotFoundError(subject.kind)
    return made_at
