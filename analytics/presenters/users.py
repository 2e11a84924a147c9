from __future__ import annotations

from uuid import UUID

from django.utils import timezone

from analytics.models import Deletion
from analytics.queries.held_users import held_data
from analytics.scores.selectors import latest_user_deletion
from analytics.wire.users import EndUser, UserErasure
from core.errors import NotFoundError
from core.wire.shown import seen_as


def end_user(project_id: UUID, user_id: str) -> EndUser:
    """Raises NotFoundError if the request log neither holds nor ever held the user."""
    held, deletion = held_data(project_id, user_id, timezone.now()), latest_user_deletion(project_id, user_id)
    if not held.request_count and deletion is None:
        raise NotFoundError("There is no such user in this project.", code="user_not_found")
    return seen_as(EndUser, held, erasure=None if deletion is None else _erasure(deletion))


def _erasure(deletion: Deletion) -> UserErasure:
    return seen_as(
        UserErasure,
        deletion,
        request_count=deletion.expected or deletion.requests,
        erased_request_count=deletion.requests,
    )
