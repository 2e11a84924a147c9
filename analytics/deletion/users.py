from __future__ import annotations

from collections.abc import Sequence

from analytics.clickhouse import client
from analytics.models import Deletion, DeletionKind
from analytics.queries.held_users import OWN_SESSIONS
from analytics.reconciliation.comparison import LIMITS


def note_sessions(deletion: Deletion) -> Sequence[str]:
    """Adds the own sessions of an end user to the deletion, and returns those that it did not have.

    They are noted before any request is erased: nothing leads from a user to the telemetry of a session afterwards.
    """
    if deletion.kind != DeletionKind.USER or not deletion.subject:
        return []
    values = {"project": deletion.project_id, "user": deletion.subject, "until": deletion.requested_at}
    found = client.execute(OWN_SESSIONS, values, settings=LIMITS, fresh=("requests",))
    known = deletion.sessions or []
    new = sorted({session for (session,) in found}.difference(known))
    if new:
        deletion.sessions = [*known, *new]
        deletion.save(update_fields=["sessions"])
    return new
