"""Presents what guardrails found in a project's requests and answers."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from analytics.parameters.ranges import TimeRange
from analytics.queries.guardrails import count_verdicts, list_verdicts
from analytics.queries.usage import Interval
from analytics.wire import guardrails as wire
from analytics.wire.texts import without
from core.wire.pagination import Listing, Page

# The maximum length of a range that is shown by hours.
_BY_HOURS = timedelta(days=7)


def guardrails(project_id: UUID, time_range: TimeRange, page: Page) -> Listing:
    """Lists the guardrails that found something, the most findings first."""
    entries = wire.figures(count_verdicts(project_id, time_range.start, time_range.end))
    return Listing(len(entries), page.of(entries), _range(time_range))


def guardrail_usage(project_id: UUID, time_range: TimeRange, page: Page, interval: Interval | None = None) -> Listing:
    """Lists the findings per hour or day, the latest first; intervals without any are left out."""
    chosen = interval or interval_of(time_range)
    entries = wire.intervals(count_verdicts(project_id, time_range.start, time_range.end, chosen))
    return Listing(len(entries), page.of(entries), {**_range(time_range), "interval": str(chosen)})


def verdicts(
    project_id: UUID,
    time_range: TimeRange,
    *,
    guardrail: str = "",
    action: str = "",
    limit: int,
    content: bool,
) -> list[dict[str, object]]:
    """Returns the newest verdicts. Without `content` their details are None: topics and tools are the project's own
    words, and a reader of figures needs neither."""
    rows = list_verdicts(project_id, time_range.start, time_range.end, guardrail=guardrail, action=action, limit=limit)
    hidden = () if content else ("detail",)
    return [without(hidden, wire.verdict(row)) for row in rows]


def interval_of(time_range: TimeRange) -> Interval:
    """Returns the interval in which a range of this length is shown."""
    return Interval.HOUR if time_range.end - time_range.start <= _BY_HOURS else Interval.DAY


def _range(time_range: TimeRange) -> dict[str, object]:
    return {"start_date": time_range.start, "end_date": time_range.end}
