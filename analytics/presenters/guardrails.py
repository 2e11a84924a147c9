from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import ranged
from analytics.queries.guardrails import count_findings, count_findings_by_interval, list_verdicts
from analytics.queries.usage import Interval
from analytics.wire.texts import without
from core.wire.pagination import Listing, Page
from core.wire.shown import shown

# The maximum length of a range that is shown by hours.
_BY_HOURS = timedelta(days=7)


def guardrails(project_id: UUID, time_range: TimeRange, page: Page) -> Listing:
    rows = count_findings(time_range.of(project_id))
    return ranged(time_range, len(rows), page.of(rows))


def guardrail_usage(project_id: UUID, time_range: TimeRange, page: Page, interval: str | None = None) -> Listing:
    chosen = Interval(interval or interval_of(time_range))
    rows = count_findings_by_interval(time_range.of(project_id), chosen)
    return ranged(time_range, len(rows), page.of(rows), interval=str(chosen))


def verdicts(
    project_id: UUID,
    time_range: TimeRange,
    *,
    guardrail: str = "",
    action: str = "",
    limit: int,
    content: bool,
) -> list[dict[str, object]]:
    """The newest verdicts. Without `content` their details are None: topics and tools are the project's own words."""
    rows = list_verdicts(time_range.of(project_id), guardrail=guardrail, action=action, limit=limit)
    hidden = () if content else ("detail",)
    return [without(hidden, shown(row)) for row in rows]


def interval_of(time_range: TimeRange) -> Interval:
    return Interval.HOUR if time_range.end - time_range.start <= _BY_HOURS else Interval.DAY
