from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from agent.tools.base import NoArguments, Toolbox, ToolContext
from agent.tools.fields import OfOperation, SessionId
from agent.tools.pages import PageArguments, PagedRangeArguments, RangeArguments, listed, page_of
from agent.tools.ranges import date_range, listed_in_range, range_dates
from analytics.parameters.ranges import TimeRange
from analytics.presenters import metrics, providers, sessions
from analytics.queries.telemetry import MAX_RECORDS
from analytics.queries.usage import Interval
from core.wire.pagination import Listing
from gateway.reports.problems import find_problems

Record = TypeVar("Record", bound=Mapping[str, Any])

SCOPE = "observability:read"

_RECENT = timedelta(days=1)
_SEVERE = ("ERROR", "FATAL", "CRITICAL")


TOOLS = Toolbox(SCOPE)


class Overview(RangeArguments, kw_only=True, frozen=True):
    operation: OfOperation = None


class Metrics(PagedRangeArguments, kw_only=True, frozen=True):
    operation: OfOperation = None


class UsageMetrics(Metrics, kw_only=True, frozen=True):
    interval: Annotated[
        Interval | None,
        Meta(description="Length of one interval; left out, minutes up to 3 hours, hours up to 7 days, else days."),
    ] = None


class SessionRecords(PageArguments, kw_only=True, frozen=True):
    session_id: SessionId
    errors_only: Annotated[bool, Meta(description="Whether to return only what failed.")] = False


@TOOLS.tool("Overview")
def get_metrics_overview(context: ToolContext, arguments: Overview) -> dict[str, Any]:
    """Totals of the project in a range of time of at most 30 days, by default the last 30: requests, sessions, users,
    tokens, cost, error rate, average latency and the models most used."""
    dates = date_range(context, arguments, max_length=metrics.OVERVIEW)
    return {**metrics.overview(context.project_id, dates, arguments.operation or "")}


@TOOLS.tool("Figures per user")
def list_user_metrics(context: ToolContext, arguments: Metrics) -> dict[str, Any]:
    """Per end user, the most expensive first: requests, sessions, tokens, cost, errors, latency and models used. By
    default of the last 30 days."""
    return listed_in_range(context, arguments, metrics.users, arguments.operation or "")


@TOOLS.tool("Figures per model")
def list_model_metrics(context: ToolContext, arguments: Metrics) -> dict[str, Any]:
    """Per model and provider: requests, error rate, tokens, cost, latency and time to first token as p50, p95 and p99.
    By default of the last 30 days."""
    return listed_in_range(context, arguments, metrics.models, arguments.operation or "")


@TOOLS.tool("Figures over time")
def list_usage_metrics(context: ToolContext, arguments: UsageMetrics) -> dict[str, Any]:
    """Requests, errors, tokens, cost and latency per minute, hour or UTC day, the latest first: to see when something
    began. By default of the last 30 days."""
    return listed_in_range(context, arguments, metrics.usage, arguments.operation or "", arguments.interval)


@TOOLS.tool("Errors by kind")
def get_error_breakdown(context: ToolContext, arguments: Metrics) -> dict[str, Any]:
    """What failed and how often, the most frequent first: provider, type, code, statuses, models, share of all errors
    and when last. By default of the last 30 days. list_requests with outcome=error has the single requests."""
    return listed_in_range(context, arguments, metrics.errors, arguments.operation or "")


@TOOLS.tool("Groups of errors")
def list_error_groups(context: ToolContext, arguments: Metrics) -> dict[str, Any]:
    """Errors in groups with when each was first and last seen, how often in each interval, and a sample request, the
    most frequent first. By default of the last 30 days. Shows what is new and what stopped."""
    return listed_in_range(context, arguments, providers.error_groups, arguments.operation or "")


@TOOLS.tool("Live latency")
def get_provider_latency(context: ToolContext, arguments: NoArguments) -> dict[str, Any]:
    """The last five minutes of each enabled provider and its models: p50, p95 and p99 latency, samples, error rate,
    status (healthy, degraded, down) and whether requests to it are held back."""
    return {**metrics.provider_latencies(context.project_id)}


@TOOLS.tool("What is wrong now")
def list_problems(context: ToolContext, arguments: RangeArguments) -> dict[str, Any]:
    """What is wrong in the project now, what is critical first, each as a sentence: failing requests of the last hour,
    providers that are down or degraded, the month's budget against its forecast, rollouts that were rolled back and
    alerts that were not delivered within the range (by default the last 24 hours), the request log itself. Ask this
    first when somebody asks how it is going."""
    recent = TimeRange(context.now - _RECENT, context.now)
    dates = date_range(context, arguments) if range_dates(context, arguments) else recent
    return {**find_problems(context.project_id, dates, context.now)}


@TOOLS.tool(
    "Spans of a session",
    f"OpenTelemetry spans that carry a session's id, by time, the first {MAX_RECORDS}: the application's own"
    " and the gateway's, with duration, status and attributes.",
)
def list_session_spans(context: ToolContext, arguments: SessionRecords) -> dict[str, Any]:
    spans = sessions.spans(context.project_id, arguments.session_id)
    return _records(spans, arguments, lambda span: span["status_code"] == "Error")


@TOOLS.tool(
    "Logs of a session",
    f"OpenTelemetry log records that carry a session's id, by time, the first {MAX_RECORDS}, with severity,"
    " body and attributes.",
)
def list_session_logs(context: ToolContext, arguments: SessionRecords) -> dict[str, Any]:
    logs = sessions.logs(context.project_id, arguments.session_id)
    return _records(logs, arguments, lambda log: log["severity_text"].upper().startswith(_SEVERE))


def _records(records: Sequence[Record], arguments: SessionRecords, failed: Callable[[Record], bool]) -> dict[str, Any]:
    found = [record for record in records if failed(record)] if arguments.errors_only else records
    page = page_of(arguments)
    return listed(Listing(len(found), page.of(found)), page)
