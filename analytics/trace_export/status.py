"""The state of a destination's export, of all hosts together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from analytics.models import TraceDestination


@dataclass(frozen=True, slots=True)
class ExportStatus:
    last_success_at: datetime | None
    last_error: str
    last_error_at: datetime | None
    waiting_spans: int
    oldest_waiting_at: datetime | None
    sent_spans: int
    dropped_spans: int
    rejected_spans: int

    @property
    def is_failing(self) -> bool:
        """Returns whether the last thing that happened is an error."""
        failed, succeeded = self.last_error_at, self.last_success_at
        return failed is not None and (succeeded is None or failed > succeeded)


def status_of(row: TraceDestination) -> ExportStatus:
    hosts = list(row.statuses.all())
    failed = max((one for one in hosts if one.last_error_at), key=lambda one: str(one.last_error_at), default=None)
    return ExportStatus(
        last_success_at=max((one.last_success_at for one in hosts if one.last_success_at), default=None),
        last_error=failed.last_error if failed else "",
        last_error_at=failed.last_error_at if failed else None,
        waiting_spans=sum(one.waiting_spans for one in hosts),
        oldest_waiting_at=min((one.oldest_waiting_at for one in hosts if one.oldest_waiting_at), default=None),
        sent_spans=sum(one.sent_spans for one in hosts),
        dropped_spans=sum(one.dropped_spans for one in hosts),
        rejected_spans=sum(one.rejected_spans for one in hosts),
    )
