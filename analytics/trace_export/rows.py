"""The exporter's rows in the database: the destinations that it reads, and the status that it writes."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Max

from analytics.models import TraceDestination, TraceDestinationStatus
from analytics.trace_export.batches import Selection
from analytics.trace_export.delivery import Target
from analytics.trace_export.destinations import headers_of
from analytics.trace_export.outbox import State
from analytics.trace_export.sender import Destination
from core.encryption.fernet import UndecryptableError

Version = tuple[int, datetime | None]


def version_of_destinations() -> Version:
    """Returns a value that differs whenever a destination was added, changed or removed."""
    found = TraceDestination.objects.aggregate(number=Count("pk"), changed=Max("updated_at"))
    return found["number"], found["changed"]


def load_destinations() -> dict[UUID, Destination]:
    return {row.pk: _destination(row) for row in TraceDestination.objects.iterator()}


def save_status(destination_id: UUID, state: State) -> None:
    """Writes this host's status of a destination, unless the destination is gone."""
    counts = state.counts
    values: dict[str, Any] = {
        "waiting_spans": state.waiting_spans,
        "waiting_bytes": state.waiting_bytes,
        "oldest_waiting_at": _time(state.oldest),
        "sent_spans": counts.sent,
        "dropped_spans": counts.dropped,
        "rejected_spans": counts.rejected,
        "last_success_at": _time(counts.last_success),
        "last_error": counts.last_error,
        "last_error_at": _time(counts.last_error_at),
    }
    try:
        with transaction.atomic():
            TraceDestinationStatus.objects.update_or_create(
                destination_id=destination_id, host=settings.HOST_NAME, defaults=values
            )
    except IntegrityError:
        return  # The destination was removed meanwhile.


def _destination(row: TraceDestination) -> Destination:
    target: Target | None = None
    with suppress(UndecryptableError):
        target = Target(row.endpoint, headers_of(row))
    selection = Selection(row.sampling_ratio, row.include_content)
    return Destination(row.pk, str(row.project_id), row.enabled, selection, target)


def _time(seconds: float) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
