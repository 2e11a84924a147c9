from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from analytics.monitoring import SPOOL
from analytics.parameters.ranges import TimeRange
from analytics.queries.summed import Sums
from analytics.trace_export.destinations import DESTINATIONS, status_of
from gateway.reports.limit_usage import month_usage
from gateway.reports.log_looks import MISSED, LogLooks
from gateway.reports.shapes import Problem, ProblemKind, Problems
from gateway.selectors import project_settings
from gateway.tables.alert import AlertDelivery
from gateway.tables.figure_alert import AlertEvent, FigureAlert
from integrations.errors import HealthUnavailableError
from integrations.health.reader import HealthStatus, project_health
from integrations.registry import provider_title
from rollouts.evaluation.words import first_sentence
from rollouts.selectors import rolled_back_between
from rollouts.watch.shown import warned_watches

logger = logging.getLogger("gateway.problems")

ERROR_SHARE = 0.05
"""The share of failed requests of the last hour from which on it is a problem."""

CRITICAL_ERROR_SHARE = 0.2
MIN_REQUESTS = 20
"""With fewer requests an hour's share of errors says little."""

_STORE_SECONDS = 1.0
_MAX_EACH = 5
# One missed look says little: the store may be busy or about to be started again.
_MISSED_LOOKS = 2

_looks = LogLooks()


@dataclass(frozen=True, slots=True)
class _Question:
    project_id: UUID
    range: TimeRange
    now: datetime
    hour: Future[Sums]


def find_problems(project_id: UUID, time_range: TimeRange, now: datetime | None = None) -> Problems:
    """Returns what is wrong now, and the rollbacks and failed alerts in the range; critical problems come first.

    A part of the service that does not answer is a problem of its own.
    """
    moment = now or datetime.now(UTC)
    question = _Question(project_id, time_range, moment, _looks.look(project_id, moment))
    found = [problem for find in _FINDERS for problem in find(question)]
    found.sort(key=lambda problem: problem["severity"] != "critical")
    return {
        "generated_at": moment,
        "start_date": time_range.start,
        "end_date": time_range.end,
        "problems": found,
    }


def _problem(
    kind: ProblemKind,
    message: str,
    *,
    is_critical: bool = False,
    subject: str = "",
    value: float | None = None,
    threshold: float | None = None,
    at: datetime | None = None,
) -> Problem:
    return {
        "kind": kind,
        "severity": "critical" if is_critical else "warning",
        "message": message,
        "subject": subject,
        "value": value,
        "threshold": threshold,
        "at": at,
    }


def _error_share(question: _Question) -> Iterator[Problem]:
    try:
        totals = question.hour.result(timeout=_STORE_SECONDS)
    except (*MISSED, TimeoutError) as error:
        # A late answer is that of a busy store; the figures that pages show meanwhile are as old.
        known = _looks.known(question.project_id, question.now) if isinstance(error, TimeoutError) else None
        if known is None:
            yield _store_problem(question.project_id)
            return
        totals = known
    share, failed, count = totals.error_rate, totals.error_count, totals.request_count
    if count >= MIN_REQUESTS and share >= ERROR_SHARE:
        yield _problem(
            "error_share",
            f"{share:.1%} of the requests of the last hour failed: {failed:,} of {count:,}.".replace("%", " %", 1),
            is_critical=share >= CRITICAL_ERROR_SHARE,
            value=share,
            threshold=ERROR_SHARE,
        )


def _store_problem(project_id: UUID) -> Problem:
    if _looks.missed(project_id) < _MISSED_LOOKS:
        return _problem(
            "store_slow",
            "The request log answers late: which share of the last hour's requests failed is not known yet.",
        )
    return _problem(
        "store_unavailable",
        "The request log does not answer: figures are missing. Requests are answered and kept meanwhile.",
        is_critical=True,
    )


def _providers(question: _Question) -> Iterator[Problem]:
    try:
        rows = project_health(question.project_id)
    except HealthUnavailableError:
        yield _problem("live_figures_unavailable", "Redis does not answer: limits and live figures are not exact.")
        return
    for row in rows:
        if row.status is HealthStatus.HEALTHY:
            continue
        is_down = row.status is HealthStatus.DOWN
        name = row.deployment or provider_title(row.provider)
        share = f"{row.health.error_share:.0%}".replace("%", " %")
        yield _problem(
            "provider_down" if is_down else "provider_degraded",
            f"{name} is {row.status}: {share} of its calls of the last five minutes failed.",
            is_critical=is_down,
            subject=row.provider,
            value=row.health.error_share,
        )


def _budget(question: _Question) -> Iterator[Problem]:
    if project_settings(question.project_id).monthly_budget_usd is None:
        return
    try:
        month = month_usage(question.project_id, question.now)
    except MISSED:
        return  # That the request log is away is a problem already.
    budget = month["budget_usd"]
    if month["spent_usd"] >= budget:
        effect = "further requests are refused" if month["hard_stop"] else "requests go on"
        yield _problem(
            "budget_spent",
            f"The month's budget of ${budget:,.2f} is spent: ${month['spent_usd']:,.2f} so far; {effect}.",
            is_critical=True,
            value=month["spent_usd"],
            threshold=budget,
        )
    elif month["forecast_usd"] > budget:
        yield _problem(
            "budget_forecast",
            f"The month's spend is going to be ${month['forecast_usd']:,.2f}, above the budget of ${budget:,.2f}.",
            value=month["forecast_usd"],
            threshold=budget,
        )


def _rollouts(question: _Question) -> Iterator[Problem]:
    for row in rolled_back_between(question.project_id, question.range.start, question.range.end, limit=_MAX_EACH):
        reason = f": {first_sentence(row.reason).rstrip('.')}" if row.reason else ""
        yield _problem(
            "rollout_rolled_back",
            f"The rollout {row.name} was rolled back{reason}.",
            subject=str(row.rollout_id),
            at=row.at,
        )


def _watches(question: _Question) -> Iterator[Problem]:
    for row in warned_watches(question.project_id, limit=_MAX_EACH):
        worse_in = ", ".join(row.worse_in)
        yield _problem(
            "rollout_watch_warned",
            f"The target of the rollout {row.name} does worse at 100 % than the version before it: {worse_in}.",
            subject=str(row.rollout_id),
            at=row.at,
        )


def _deliveries(question: _Question) -> Iterator[Problem]:
    within = (question.range.start, question.range.end)
    of_budget = Q(alert__project_id=question.project_id, alert__created_at__range=within)
    of_event = Q(event__project_id=question.project_id, event__created_at__range=within)
    rows = (
        AlertDelivery.objects.filter(of_budget | of_event)
        .exclude(state=AlertDelivery.State.DELIVERED)
        .exclude(event__kind=AlertEvent.Kind.TEST)
        .filter(attempts__gt=0)
        .select_related("alert", "event")
        .order_by("-id")
    )
    for row in rows[:_MAX_EACH]:
        state = "could not be delivered" if row.state == AlertDelivery.State.FAILED else "is not delivered yet"
        yield _problem(
            "alert_undelivered",
            f"The alert about {row.about} {state} by {row.way}: {row.last_error.rstrip('.')}.",
            subject=_subject_of(row),
            at=row.about.created_at,
        )


def _subject_of(row: AlertDelivery) -> str:
    event = row.event
    return str(row.alert_id if event is None else event.alert_id or event.rollout_id)


def _figure_alerts(question: _Question) -> Iterator[Problem]:
    states = (FigureAlert.State.FIRING, FigureAlert.State.BROKEN)
    rows = FigureAlert.objects.for_project(question.project_id).filter(state__in=states).order_by("-state_since")
    loud = [row for row in rows if not row.is_silenced or row.state == FigureAlert.State.BROKEN]
    for row in loud[:_MAX_EACH]:
        kind: ProblemKind
        if row.state == FigureAlert.State.BROKEN:
            kind, message = "alert_broken", f"The alert {row.name} cannot be checked: {row.problem}"
        else:
            kind, message = "alert_firing", f"The alert {row.name} fires."
        yield _problem(kind, message, subject=str(row.pk), at=row.state_since)


def _trace_export(question: _Question) -> Iterator[Problem]:
    for row in DESTINATIONS.rows(question.project_id):
        status = status_of(row)
        if not (row.enabled and status.is_failing and status.last_error_at):
            continue
        yield _problem(
            "trace_export_failing",
            f"Spans do not reach {row.name}: {status.last_error.rstrip('.')}.",
            subject=str(row.pk),
            at=status.last_error_at,
        )


def _spool(question: _Question) -> Iterator[Problem]:
    kinds: dict[str, ProblemKind] = {
        "records_lost": "records_lost",
        "shipping_behind": "shipping_behind",
        "dead_letters": "dead_letters",
    }
    try:
        alarms = list(SPOOL.alarms(SPOOL.ask()))
    except OSError:
        logger.warning("spool.unreadable path=%s", settings.SPOOL_DIR)
        return
    for alarm in alarms:
        yield _problem(kinds[alarm.kind], alarm.text, is_critical=alarm.kind == "records_lost")


_FINDERS: tuple[Callable[[_Question], Iterator[Problem]], ...] = (
    _providers, _budget, _rollouts, _watches, _deliveries, _figure_alerts, _trace_export, _spool,
    _error_share,
)  # fmt: skip
