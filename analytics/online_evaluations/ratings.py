"""Which answers users rated bad within a day.

Feedback that names the request counts. Without any, feedback on the session counts if it names no request and came
after the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from analytics.evaluators.definitions import UserFeedback
from analytics.identifiers import id_hash
from analytics.models import BAD_FEEDBACK, Feedback

_WITHIN = UserFeedback.waits


@dataclass(frozen=True, slots=True)
class RatedAnswer:
    request_id: UUID
    session_id: str
    asked_at: datetime


_Rating = tuple[datetime, int]


def rated_bad(project_id: UUID, answers: Sequence[RatedAnswer]) -> set[UUID]:
    by_request = {id_hash(str(one.request_id)): one for one in answers}
    sessions = {id_hash(one.session_id) for one in answers if one.session_id}
    rated = Feedback.objects.for_project(project_id).filter(score__isnull=False)
    rows = rated.filter(Q(request_hash__in=list(by_request)) | Q(session_hash__in=list(sessions), request_hash=""))
    named: dict[str, list[_Rating]] = {}
    of_session: dict[str, list[_Rating]] = {}
    for request, session, at, score in rows.order_by().values_list(
        "request_hash", "session_hash", "created_at", "score"
    ):
        ratings = named.setdefault(request, []) if request else of_session.setdefault(session, [])
        ratings.append((at, score or 0))
    bad = set()
    for request, answer in by_request.items():
        until = answer.asked_at + _WITHIN
        own = [score for at, score in named.get(request, ()) if at <= until]
        others = of_session.get(id_hash(answer.session_id), ()) if answer.session_id else ()
        if _is_bad(own or (score for at, score in others if answer.asked_at <= at <= until)):
            bad.add(answer.request_id)
    return bad


def _is_bad(scores: Iterable[int]) -> bool:
    return any(score in BAD_FEEDBACK for score in scores)
