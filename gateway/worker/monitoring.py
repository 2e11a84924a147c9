from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.conf import settings
from prometheus_client.core import Metric

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from core.processes.monitoring import Found, Subject, gauge
from core.processes.notices import notices_dir, read_notices
from core.redis.clients import shared_client
from gateway.limits.figures import Figures
from gateway.selectors import rows_with_budget
from gateway.worker.state import WORKER_PREFIX, WorkerState

_MAX_BUDGETS = 100
_REDIS_SECONDS = 1.0
_CIRCUIT_STATES = ("open", "half_open")
_decoder = msgspec.json.Decoder(WorkerState)


def ping_redis() -> None:
    shared_client(settings.REDIS_URL, seconds=_REDIS_SECONDS).ping()


def _budgets() -> dict[str, Any]:
    month, found, figures = datetime.now(UTC).strftime("%Y-%m"), [], Figures()
    for row in rows_with_budget()[:_MAX_BUDGETS]:
        try:
            spent = figures.month(row.project_id, month).spent_usd
        except (AnalyticsUnavailableError, AnalyticsLimitError):
            continue
        budget = row.settings.monthly_budget_usd or 0
        found.append([str(row.project_id), float(budget), float(budget - spent)])
    return {"budgets": found}


def _budget_metrics(found: Found) -> Iterable[Metric]:
    yield gauge(
        "budget_usd",
        "The month's budget of a project, in US dollars.",
        ["project"],
        [((project,), budget) for project, budget, _ in found["budgets"]],
    )
    yield gauge(
        "budget_left_usd",
        "What is left of it; negative when more was spent.",
        ["project"],
        [((project,), left) for project, _, left in found["budgets"]],
    )


BUDGETS = Subject("budgets", _budgets, 30.0, _budget_metrics)


def worker_states() -> list[WorkerState]:
    found = []
    for notice in read_notices(notices_dir(), WORKER_PREFIX):
        try:
            found.append(_decoder.decode(notice.message))
        except msgspec.DecodeError:
            continue  # The state was written by another version of this code.
    return found


def worker_metrics(states: list[WorkerState]) -> Iterator[Metric]:
    yield gauge("web_workers", "Web workers that live.", (), [((), len(states))])
    yield gauge(
        "web_workers_ready",
        "Web workers for which a readiness check holds.",
        ["check"],
        [((check,), sum(state.ready.get(check, False) for state in states)) for check in _checks(states)],
    )
    yield gauge("in_flight_requests", "Requests in flight.", (), [((), sum(state.in_flight for state in states))])
    yield gauge(
        "event_loop_lag_seconds",
        "The longest that a worker's event loop was held up within 15 seconds, of the slowest worker.",
        (),
        [((), max((state.loop_lag_seconds for state in states), default=0.0))],
    )
    yield gauge(
        "planned_requests",
        "Requests that workers which run tried to answer by a plan, by what became of it: answered, declined, "
        "handed_over.",
        ["result"],
        [
            (("answered",), sum(state.planned for state in states)),
            (("declined",), sum(state.declined for state in states)),
            (("handed_over",), sum(state.handed_over for state in states)),
        ],
    )
    yield gauge(
        "redis_connected_workers",
        "Workers that reach Redis, by what they want of it.",
        ["use"],
        [
            (("limits",), sum(state.limits_connected for state in states)),
            (("cache",), sum(state.cache_connected for state in states)),
            (("health",), sum(state.health_connected for state in states)),
        ],
    )
    yield _circuits(states)


def _checks(states: list[WorkerState]) -> list[str]:
    return sorted({check for state in states for check in state.ready})


def _circuits(states: list[WorkerState]) -> Metric:
    """Counts by provider alone, because models have no bound. Workers agree on a circuit within milliseconds."""
    targets: dict[str, dict[tuple[int, str], str]] = {}
    for state in states:
        for integration, provider, model, circuit in state.circuits:
            targets.setdefault(provider, {})[(integration, model)] = circuit
    counts = [
        ((provider, state), list(found.values()).count(state))
        for provider, found in sorted(targets.items())
        for state in _CIRCUIT_STATES
    ]
    return gauge(
        "circuits", "Models of integrations that rest (open) or are tried (half_open).", ["provider", "state"], counts
    )
