from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.models import ChartKind
from analytics.parameters.ranges import TimeRange
from analytics.presenters import metrics
from analytics.queries.users import top_users
from console.dashboards.keeping import keep_address, keep_providers
from core.ui.formats import duration, moment, money, number, share
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Table
from core.wire.pagination import Page
from integrations.access.deployments import title_of
from integrations.registry import provider_title
from rollouts.evaluation.words import first_sentence
from rollouts.models import Rollout
from rollouts.selectors import current_stage, list_rollouts
from rollouts.states import Status

_TOP = Page(limit=6, offset=0)
_REQUESTS = "analytics_requests_changelist"
_Row = Mapping[str, Any]


def provider_table(visit: Visit) -> Table:
    """Returns the providers' live state, those in trouble first. Raises HealthUnavailableError."""
    rows = metrics.provider_latencies(visit.project.pk)["providers"]
    order = {"down": 0, "degraded": 1}
    return Table(
        caption="The state of each provider as routing sees it, with the calls it rests on",
        columns=[
            Column("provider", "Provider", lambda row: title_of(row["provider"], row["deployment"])),
            Column("status", "State", _state),
            Column("p50", "p50", lambda row: duration(row["p50_ms"]), is_numeric=True),
            Column("p95", "p95", lambda row: duration(row["p95_ms"]), is_numeric=True),
            Column("errors", "Errors", lambda row: _error_rate(row), is_numeric=True),
            Column("calls", "Calls", lambda row: number(row["outcomes"]), is_numeric=True),
        ],
        rows=sorted(
            rows, key=lambda row: (order.get(row["status"], 2), -row["outcomes"], row["provider"], row["deployment"])
        ),
        empty=Empty("No provider is set up.", visit.link_if_there("provider_keys"), "Add a provider's key"),
        key=lambda row: visit.link_if_there("providers") or visit.link(_REQUESTS, provider=row["provider"]),
        keep=keep_providers(visit),
    )


def _state(row: _Row) -> Any:
    # A state without any call behind it means only that no failure of the provider is known.
    return status(row["status"]) if row["outcomes"] else status("no calls", "neutral")


def _error_rate(row: _Row) -> str:
    return share(row["error_rate"] if row["outcomes"] else None)


def error_table(visit: Visit, time_range: TimeRange) -> Table:
    return Table(
        caption="What failed most often",
        columns=[
            Column("code", "Code", lambda row: row["code"] or row["type"] or "unknown"),
            Column("provider", "Provider", lambda row: provider_title(row["provider"]) or "refused here"),
            Column("count", "Errors", lambda row: number(row["error_count"]), is_numeric=True),
            Column("share", "Share", lambda row: f"{row['percentage']:.0f} %", is_numeric=True),
            Column("last", "Last", lambda row: moment(row["last_seen"])),
        ],
        rows=metrics.errors(visit.project.pk, time_range, _TOP).results,
        empty=visit.nothing("Nothing failed in this range."),
        key=lambda row: visit.link(
            _REQUESTS, outcome="error", error_code=row["code"], error_type=row["type"], provider=row["provider"]
        ),
        keep=keep_address(visit, "Error codes", ChartKind.RANKING, ["error_count"], group_by="error_code"),
    )


def model_table(visit: Visit, time_range: TimeRange) -> Table:
    return Table(
        caption="The models that cost most",
        columns=[
            Column("model", "Model", lambda row: row["model"] or "none"),
            Column("provider", "Provider", lambda row: provider_title(row["provider"]) or "refused here"),
            Column("requests", "Requests", lambda row: number(row["request_count"]), is_numeric=True),
            Column("errors", "Errors", lambda row: share(row["error_rate"]), is_numeric=True),
            Column("p95", "p95", lambda row: duration(row["p95_latency_ms"]), is_numeric=True),
            Column("cost", "Cost", lambda row: money(row["total_cost_usd"]), is_numeric=True),
        ],
        rows=metrics.models(visit.project.pk, time_range, _TOP).results,
        empty=_no_requests(visit),
        key=lambda row: visit.link(_REQUESTS, model=row["model"], provider=row["provider"]),
        keep=keep_address(
            visit,
            "Top models",
            ChartKind.TABLE,
            ["total_cost_usd", "request_count", "error_rate", "p95_latency_ms"],
            group_by="model",
        ),
    )


def user_table(visit: Visit, time_range: TimeRange) -> Table:
    return Table(
        caption="The users who cost most",
        columns=[
            Column("user", "User", lambda row: row.user_id),
            Column("requests", "Requests", lambda row: number(row.request_count), is_numeric=True),
            Column("errors", "Errors", lambda row: share(row.error_rate), is_numeric=True),
            Column("cost", "Cost", lambda row: money(row.total_cost_usd), is_numeric=True),
        ],
        rows=top_users(time_range.of(visit.project.pk), limit=_TOP.limit),
        empty=visit.nothing("No request of this range names its user (header x-svc-user-id)."),
        key=lambda row: visit.link("user", visit.project.pk, row.user_id),
        keep=keep_address(
            visit, "Top users", ChartKind.TABLE, ["total_cost_usd", "request_count", "error_rate"], group_by="user"
        ),
    )


def _no_requests(visit: Visit) -> Empty:
    playground = visit.link_if_there("gateway_playground_changelist")
    return visit.nothing("No requests in this range.", playground, "Send one in the playground" if playground else "")


def rollout_table(visit: Visit) -> Table:
    active = list_rollouts(visit.project.pk).filter(status__in=[Status.RUNNING.value, Status.PAUSED.value])
    return Table(
        caption="Rollouts that serve requests",
        columns=[
            Column("name", "Rollout", lambda row: row.name),
            Column("prompt", "Prompt", lambda row: row.config.name),
            Column("status", "Status", lambda row: status(row.status)),
            Column("stage", "Stage", _stage),
            Column(
                "verdict",
                "Verdict",
                lambda row: first_sentence(row.evaluation.verdict.get("explanation", "")) or "none yet",
            ),
        ],
        rows=list(active[: _TOP.limit]),
        empty=Empty("No rollout is running.", visit.link_if_there("rollout_form"), "Start one"),
        key=lambda row: visit.link("rollouts_rollout_change", row.pk),
    )


def _stage(row: Rollout) -> str:
    stage = current_stage(row)
    return f"{stage.number} of {len(row.stages.all())}, {stage.weight} %" if stage else ""
