"""Tools of the scope observability:read: traffic metrics, live latency, errors, and a session's telemetry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from agent.tools.base import NoArguments, Tool, ToolContext
from agent.tools.fields import OfOperation, SessionId
from agent.tools.pages import PageArguments, PagedRangeArguments, RangeArguments, listed, page_of
from agent.tools.ranges import date_range, range_dates
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


def _overview(context: ToolContext, arguments: Overview) -> dict[str, Any]:
    dates = date_range(context, arguments, max_length=metrics.OVERVIEW)
    return {**metrics.overview(context.project_id, dates, arguments.operation or "")}


def _users(context: ToolContext, arguments: Metrics) -> dict[str, Any]:
    page = page_of(arguments)
    dates = date_range(context, arguments)
    return listed(metrics.users(context.project_id, dates, page, arguments.operation or ""), page)


def _models(context: ToolContext, arguments: Metrics) -> dict[str, Any]:
    page = page_of(arguments)
    dates = date_range(context, arguments)
    return listed(metrics.models(context.project_id, dates, page, arguments.operation or ""), page)


def _usage(context: ToolContext, arguments: UsageMetrics) -> dict[str, Any]:
    page = page_of(arguments)
    dates = date_range(context, arguments)
    found = metrics.usage(context.project_id, dates, page, arguments.interval, arguments.operation or "")
    return listed(found, page)


def _errors(context: ToolContext, arguments: Metrics) -> dict[str, Any]:
    page = page_of(arguments)
    dates = date_range(context, arguments)
    return listed(metrics.errors(context.project_id, dates, page, arguments.operation or ""), page)


def _error_groups(context: ToolContext, arguments: Metrics) -> dict[str, Any]:
    page = page_of(arguments)
    dates = date_range(context, arguments)
    return listed(providers.error_groups(context.project_id, dates, page, arguments.operation or ""), page)


def _provider_latency(context: ToolContext, arguments: NoArguments) -> dict[str, Any]:
    return {**metrics.provider_latencies(context.project_id)}


def _problems(context: ToolContext, arguments: RangeArguments) -> dict[str, Any]:
    recent = TimeRange(context.now - _RECENT, context.now)
    dates = date_range(context, arguments) if range_dates(context, arguments) else recent
    return {**find_problems(context.project_id, dates, context.now)}


def _spans(context: ToolContext, arguments: SessionRecords) -> dict[str, Any]:
    spans = sessions.spans(context.project_id, arguments.session_id)
    return _records(spans, arguments, lambda span: span["status_code"] == "Error")


def _logs(context: ToolContext, arguments: SessionRecords) -> dict[str, Any]:
    logs = sessions.logs(context.project_id, arguments.session_id)
    return _records(logs, arguments, lambda log: log["severity_text"].upper().startswith(_SEVERE))


def _records(records: Sequence[Record], arguments: SessionRecords, failed: Callable[[Record], bool]) -> dict[str, Any]:
    found = [record for record in records if failed(record)] if arguments.errors_only else records
    page = page_of(arguments)
    return listed(Listing(len(found), page.of(found)), page)


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="get_metrics_overview",
        scope=SCOPE,
        title="Overview",
        description=(
            "Totals of the project in a range of time of at most 30 days, by default the last 30: requests, sessions,"
            " users, tokens, cost, error rate, average latency and the models most used."
        ),
        arguments=Overview,
        run=_overview,
    ),
    Tool(
        name="list_user_metrics",
        scope=SCOPE,
        title="Figures per user",
        description=(
            "Per end user, the most expensive first: requests, sessions, tokens, cost, errors, latency and models used."
            " By default of the last 30 days."
        ),
        arguments=Metrics,
        run=_users,
    ),
    Tool(
        name="list_model_metrics",
        scope=SCOPE,
        title="Figures per model",
        description=(
            "Per model and provider: requests, error rate, tokens, cost, latency and time to first token as p50, p95"
            " and p99. By default of the last 30 days."
        ),
        arguments=Metrics,
        run=_models,
    ),
    Tool(
        name="list_usage_metrics",
        scope=SCOPE,
        title="Figures over time",
        description=(
            "Requests, errors, tokens, cost and latency per minute, hour or UTC day, the latest first: to see when"
            " something began. By default of the last 30 days."
        ),
        arguments=UsageMetrics,
        run=_usage,
    ),
    Tool(
        name="get_error_breakdown",
        scope=SCOPE,
        title="Errors by kind",
        description=(
            "What failed and how often, the most frequent first: provider, type, code, statuses, models, share of all"
            " errors and when last. By default of the last 30 days. list_requests with outcome=error has the single"
            " requests."
        ),
        arguments=Metrics,
        run=_errors,
    ),
    Tool(
        name="list_error_groups",
        scope=SCOPE,
        title="Groups of errors",
        description=(
            "Errors in groups with when each was first and last seen, how often in each interval, and a sample request,"
            " the most frequent first. By default of the last 30 days. Shows what is new and what stopped."
        ),
        arguments=Metrics,
        run=_error_groups,
    ),
    Tool(
        name="get_provider_latency",
        scope=SCOPE,
        title="Live latency",
        description=(
            "The last five minutes of each enabled provider and its models: p50, p95 and p99 latency, samples, error"
            " rate, status (healthy, degraded, down) and whether requests to it are held back."
        ),
        arguments=NoArguments,
        run=_provider_latency,
    ),
    Tool(
        name="list_problems",
        scope=SCOPE,
        title="What is wrong now",
        description=(
            "What is wrong in the project now, what is critical first, each as a sentence: failing requests of the last"
            " hour, providers that are down or degraded, the month's budget against its forecast, rollouts that were"
            " rolled back and alerts that were not delivered within the range (by default the last 24 hours), the"
            " request log itself. Ask this first when somebody asks how it is going."
        ),
        arguments=RangeArguments,
        run=_problems,
    ),
    Tool(
        name="list_session_spans",
        scope=SCOPE,
        title="Spans of a session",
        description=(
            f"OpenTelemetry spans that carry a session's id, by time, the first {MAX_RECORDS}: the application's own"
            " and the gateway's, with duration, status and attributes."
        ),
        arguments=SessionRecords,
        run=_spans,
    ),
    Tool(
        name="list_session_logs",
        scope=SCOPE,
        title="Logs of a session",
        description=(
            f"OpenTelemetry log records that carry a session's id, by time, the first {MAX_RECORDS}, with severity,"
            " body and attributes."
        ),
        arguments=SessionRecords,
        run=_logs,
    ),
)
