from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.http.response import HttpResponseBase

from analytics.models import ChartKind
from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import provider_latencies
from analytics.presenters.providers import MAX_RANGE, provider_history
from console.dashboards.keeping import keep_address, keep_providers
from console.providers.failovers import failovers_context
from core.rights.asking import sees_every_project
from core.roles import Right
from core.ui import formats
from core.ui.edit import EditPage
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.plots import Strip
from core.ui.tables import Column, Empty, Table
from integrations.access.deployments import title_of
from integrations.connection_tests.services import try_integration
from integrations.models import ProviderIntegration
from integrations.registry import provider_title
from integrations.selectors import project_integrations
from integrations.services import IntegrationChange, update_integration

_REQUESTS = "analytics_requests_changelist"
_STATES = {"healthy": "good", "degraded": "warn", "down": "bad", "none": "none"}
_REFRESH_SECONDS = 30
# A strip is some kilobytes, and a page has room for 150 of them.
MAX_STRIPS = 12


class ProvidersPage(EditPage[str, Any]):
    route = "providers/"
    name = "providers"
    title = "Providers"
    right = Right.ADMINISTER
    saves = ()

    def record(self, visit: Visit, **route: Any) -> str:
        return visit.request.POST.get("name", "")

    def shown(self, visit: Visit, record: str, form: None) -> Mapping[str, Any]:
        rows = project_integrations(visit.project.pk) if visit.may(Right.ADMINISTER) else ()
        keys_address = visit.link_if_there("provider_keys")
        return {"integrations": [_integration(visit, row) for row in rows], "keys_address": keys_address}

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [
            Panel(
                "live",
                "Now: the last five minutes",
                "providers/live.html",
                lambda: _live(visit),
                is_wide=True,
                refresh_seconds=_REFRESH_SECONDS,
            ),
            Panel("history", _history_title(visit), "providers/history.html", lambda: _history(visit)),
            Panel(
                "failovers",
                "Failovers",
                "providers/failovers.html",
                lambda: failovers_context(visit, shown_range(visit)),
            ),
        ]

    def do_test(self, visit: Visit, record: str) -> HttpResponseBase:
        trusted = sees_every_project(visit.person)
        outcome = try_integration(project_id=visit.project.pk, name=record, trusted=trusted)
        took = f" ({formats.duration(outcome.latency_ms)})" if outcome.latency_ms is not None else ""
        answer = visit.done if outcome.ok else visit.failed
        return answer(f"{record}: {outcome.reason.value}. {outcome.detail}{took}", visit.link(self.name))

    def do_disable(self, visit: Visit, record: str) -> HttpResponseBase:
        return self._switch(visit, record, is_enabled=False)

    def do_enable(self, visit: Visit, record: str) -> HttpResponseBase:
        return self._switch(visit, record, is_enabled=True)

    def _switch(self, visit: Visit, record: str, *, is_enabled: bool) -> HttpResponseBase:
        update_integration(project_id=visit.project.pk, name=record, change=IntegrationChange(enabled=is_enabled))
        what = "may be used again" if is_enabled else "gets no more requests"
        return visit.done(f"{record} {what}.", visit.link(self.name))


def _integration(visit: Visit, row: ProviderIntegration) -> dict[str, Any]:
    return {
        "name": row.name,
        "title": title_of(row.provider, row.name),
        "is_enabled": row.enabled,
        "tested_at": row.last_tested_at,
        "test_ok": row.last_test_ok,
        "test_reason": row.last_test_reason,
        "updated_at": row.updated_at,
        "href": visit.link_if_there("provider_key", name=row.name),
    }


def _live(visit: Visit) -> dict[str, Any]:
    found = provider_latencies(visit.project.pk)
    models = [
        {**model, "provider": provider["provider"], "deployment": provider["deployment"]}
        for provider in found["providers"]
        for model in provider["models"]
    ]
    link = visit.link_if_there("provider_keys")
    return {
        "generated_at": found["generated_at"],
        "table": Table(
            caption="Providers that are switched on, live",
            columns=[
                Column("provider", "Provider", lambda row: title_of(row["provider"], row["deployment"])),
                *_figures(),
                _circuits(),
            ],
            rows=found["providers"],
            empty=Empty("No provider is switched on.", link, "Add a key" if link else ""),
            key=lambda row: visit.link_if_there(_REQUESTS, deployment=row["deployment"]),
            keep=keep_providers(visit),
        ),
        "models": Table(
            caption="Models that were called in the last five minutes",
            columns=[
                Column("model", "Model", lambda row: row["model"]),
                Column("provider", "Provider", lambda row: title_of(row["provider"], row["deployment"])),
                *_figures(),
                Column("circuit", "Circuit", lambda row: status(row["circuit"])),
            ],
            rows=models,
            empty=Empty("No model was called in the last five minutes."),
            key=lambda row: visit.link_if_there(_REQUESTS, deployment=row["deployment"], model=row["model"]),
        ),
    }


def _figures() -> list[Column]:
    return [
        Column("status", "State", _state),
        Column("p50", "p50", lambda row: formats.duration(row["p50_ms"]), is_numeric=True),
        Column("p95", "p95", lambda row: formats.duration(row["p95_ms"]), is_numeric=True),
        Column("p99", "p99", lambda row: formats.duration(row["p99_ms"]), is_numeric=True),
        Column("outcomes", "Calls", lambda row: formats.number(row["outcomes"]), is_numeric=True),
        Column("samples", "Timed", lambda row: formats.number(row["samples"]), is_numeric=True),
        Column(
            "errors",
            "Failed",
            lambda row: formats.share(row["error_rate"] if row["outcomes"] else None),
            is_numeric=True,
        ),
    ]


def _state(row: Mapping[str, Any]) -> Any:
    """The state is unknown without a call in the last five minutes, unless a circuit is open."""
    if not row["outcomes"] and row["status"] == "healthy":
        return status("no calls", "neutral")
    return status(row["status"])


def _circuits() -> Column:
    def worst(row: Mapping[str, Any]) -> Any:
        circuits = [model["circuit"] for model in row["models"]]
        broken = [circuit for circuit in circuits if circuit != "closed"]
        if not broken:
            return status("closed") if circuits else formats.NONE
        kind = "open" if "open" in broken else "half_open"
        return status(kind, label=f"{len(broken)} of {len(circuits)} {kind.replace('_', ' ')}")

    return Column("circuit", "Circuits", worst)


def shown_range(visit: Visit) -> TimeRange:
    """Returns the history's range: at least a day, since a strip of an hour shows nothing, and at most a week."""
    end = visit.period.end
    length = min(max(end - visit.period.start, timedelta(days=1)), MAX_RANGE)
    return TimeRange(end - length, end)


def _history_title(visit: Visit) -> str:
    hours = round((shown_range(visit).end - shown_range(visit).start) / timedelta(hours=1))
    return f"The last {hours} hours" if hours <= 48 else f"The last {hours // 24} days"


def _history(visit: Visit) -> dict[str, Any]:
    shown = shown_range(visit)
    found = provider_history(visit.project.pk, shown, interval_minutes=_interval_minutes(shown.end - shown.start))
    step = timedelta(minutes=found["interval_minutes"])
    ordered = sorted(
        found["providers"], key=lambda one: (-one["request_count"] - one["failover_count"], one["provider"])
    )
    histories = [one for provider in ordered for one in _histories(provider)]
    return {
        "cell": "30 minutes" if found["interval_minutes"] == 30 else f"{found['interval_minutes'] // 60} h",
        "keep": keep_address(visit, "Failed by provider", ChartKind.LINE, ["error_rate"], group_by="provider"),
        "left_out": [one["title"] for one in histories[MAX_STRIPS:]],
        "providers": [
            {
                **one,
                "href": visit.link_if_there(_REQUESTS, **one["filter"]),
                "errors_href": visit.link_if_there(_REQUESTS, outcome="error", **one["filter"]),
                "strip": Strip(
                    title=f"State of {one['title']}",
                    cells=[_cell(cell) for cell in one["intervals"]],
                    step=step,
                    caption=False,
                ),
            }
            for one in histories[:MAX_STRIPS]
        ],
    }


def _histories(provider: Mapping[str, Any]) -> list[dict[str, Any]]:
    name, deployments = provider["provider"], provider["deployments"]
    title = provider_title(name)
    shown = deployments if len(deployments) > 1 else []
    return [
        {**provider, "title": title, "filter": {"provider": name}},
        *(
            {**one, "title": f"{title}: {one['deployment']}", "filter": {"deployment": one["deployment"]}}
            for one in sorted(shown, key=lambda one: (-one["request_count"] - one["failover_count"], one["deployment"]))
        ),
    ]


def _interval_minutes(length: timedelta) -> int:
    days = length / timedelta(days=1)
    return 30 if days <= 1 else 60 if days <= 2 else 180


def _cell(cell: Mapping[str, Any]) -> tuple[datetime, Any, str]:
    words = "no requests"
    if cell["error_rate"] is not None:
        words = (
            f"{formats.share(cell['error_rate'])} failed: {formats.number(cell['error_count'])} errors and"
            f" {formats.number(cell['failover_count'])} failovers, {formats.number(cell['request_count'])} requests"
        )
    return cell["start"], _STATES[cell["status"]], words
