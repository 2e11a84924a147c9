from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http.response import HttpResponseBase
from django.utils.html import format_html

from analytics.parameters.ranges import TimeRange
from analytics.presenters import guardrails as presenter
from analytics.queries.usage import Interval
from console.settings_form.base import SettingsFormPage
from console.settings_form.form import SectionForm
from console.settings_form.wording import GUARDRAILS as NAMES
from core.errors import ApplicationError
from core.ui.formats import moment, number, share
from core.ui.marks import id_link, status
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.plots import Plot, Series
from core.ui.tables import Column, Empty, Table
from core.wire.pagination import MAXIMUM_LIMIT
from core.wire.pagination import Page as ListPage
from gateway.models import GatewaySettings
from gateway.project_settings.sections import GUARDRAILS, GUARDRAILS_OF_ANSWERS, GUARDRAILS_OF_REQUESTS
from gateway.project_settings.values import read_settings
from gateway.reports.dry_run import run_dry

DRY_RUN_SECONDS = 4.0
SAMPLE_ROWS = 10
_MAX_SERIES = 6

_KINDS = {"blocked": "bad", "flagged": "warn", "masked": "warn"}
_CODES = {"pii": "pii_detected"}


class GuardrailsPage(SettingsFormPage):
    route = "guardrails/"
    name = "guardrails"
    title = "Guardrails"
    sections = (GUARDRAILS, GUARDRAILS_OF_REQUESTS, GUARDRAILS_OF_ANSWERS)

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [
            Panel.of_table("rules", "What each rule found", lambda: _rules(visit), is_wide=True),
            Panel("time", "Findings over time", "panels/plot.html", lambda: {"plot": _over_time(visit)}, is_wide=True),
            Panel.of_table("sample", "The latest findings", lambda: _sample(visit), is_wide=True),
        ]

    def act(self, visit: Visit, action: str, form: SectionForm, row: GatewaySettings, seen: str) -> HttpResponseBase:
        settings = read_settings(form.after)
        try:
            found = run_dry(visit.project.pk, settings.guardrails, max_seconds=DRY_RUN_SECONDS)
        except ApplicationError as error:
            return self.answer(visit, form, row, seen=seen, dry_run_problem=error.message)
        return self.answer(visit, form, row, seen=seen, dry_run=_dry_run(visit, found))


def _range(visit: Visit) -> TimeRange:
    return TimeRange(visit.period.start, visit.period.end)


def _rules(visit: Visit) -> Table:
    found = presenter.guardrails(visit.project.pk, _range(visit), ListPage(MAXIMUM_LIMIT, 0))
    return Table(
        caption="Requests by guardrail",
        columns=[
            Column("guardrail", "Guardrail", lambda row: NAMES.get(row["guardrail"], row["guardrail"])),
            Column("stage", "Looked at", lambda row: "requests" if row["stage"] == "input" else "answers"),
            Column("found", "Found", lambda row: number(row["found_count"]), is_numeric=True),
            Column("blocked", "Refused", lambda row: _refused(visit, row), is_numeric=True),
            Column("flagged", "Flagged", lambda row: number(row["flagged_count"]), is_numeric=True),
            Column("masked", "Masked", lambda row: number(row["masked_count"]), is_numeric=True),
            Column("last", "Last", lambda row: moment(row["last_seen"])),
        ],
        rows=found.results,
        empty=Empty(f"No guardrail found anything: {visit.period.label.lower()}."),
    )


def _refused(visit: Visit, row: Mapping[str, Any]) -> Any:
    code, shown = _CODES.get(row["guardrail"], row["guardrail"]), number(row["blocked_count"])
    return visit.linked(shown, "analytics_requests_changelist", error_code=code) if row["blocked_count"] else shown


def _over_time(visit: Visit) -> Plot:
    time_range = _range(visit)
    interval = presenter.interval_of(time_range)
    entries = presenter.guardrail_usage(visit.project.pk, time_range, ListPage(MAXIMUM_LIMIT, 0), interval).results
    times = _times(time_range, interval)
    by_rule: dict[str, dict[datetime, int]] = {}
    for entry in entries:
        counts = by_rule.setdefault(entry["guardrail"], {})
        counts[entry["start"]] = counts.get(entry["start"], 0) + entry["found_count"]
    rules = sorted(by_rule, key=lambda name: -sum(by_rule[name].values()))[:_MAX_SERIES]
    return Plot(
        title=f"Requests with findings per {interval}",
        times=times,
        series=[
            Series(NAMES.get(rule, rule), [by_rule[rule].get(time, 0) for time in times])
            for rule in rules
            if any(by_rule[rule].values())
        ],
        kind="stacked",
        empty="No guardrail found anything in this range.",
    )


def _times(time_range: TimeRange, interval: Interval) -> list[datetime]:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    first = epoch + (time_range.start - epoch) // interval.length * interval.length
    return [first + step * interval.length for step in range((time_range.end - first) // interval.length + 1)]


def _sample(visit: Visit) -> Table:
    query = visit.request.GET
    rows = presenter.verdicts(
        visit.project.pk,
        _range(visit),
        guardrail=query.get("guardrail", ""),
        action=query.get("action", ""),
        limit=SAMPLE_ROWS,
        content=visit.sees_content,
    )
    columns = [
        Column("time", "Time", lambda row: moment(row["created_at"])),
        Column("request", "Request", lambda row: _request(visit, row["request_id"])),
        Column("guardrail", "Guardrail", lambda row: NAMES.get(row["guardrail"], row["guardrail"])),
        Column("action", "What followed", lambda row: status(row["action"], _KINDS.get(row["action"], "neutral"))),
        Column("model", "Model", lambda row: row["model"]),
        Column("user", "User", lambda row: row["user_id"]),
    ]
    if visit.sees_content:
        columns.insert(3, Column("detail", "What", lambda row: row["detail"]))
    return Table(
        caption="The latest findings",
        columns=columns,
        rows=rows,
        empty=Empty(f"No guardrail found anything: {visit.period.label.lower()}."),
    )


def _request(visit: Visit, request_id: Any) -> Any:
    return id_link(visit.link_if_there("analytics_requests_detail", visit.project.pk, request_id), request_id)


def _dry_run(visit: Visit, found: Mapping[str, Any]) -> dict[str, Any]:
    rules = Table(
        caption="What each rule would have done",
        columns=[
            Column("guardrail", "Rule", lambda row: NAMES.get(row["guardrail"], row["guardrail"])),
            Column("found", "Found", lambda row: number(row["found_count"]), is_numeric=True),
            Column("refused", "Would refuse", lambda row: number(row["refused_count"]), is_numeric=True),
            Column("share", "Share of all requests", _limits),
            Column("details", "What", _details),
            Column("examples", "Examples", lambda row: _examples(visit, row["examples"])),
        ],
        rows=found["rules"],
        empty=Empty("No rule for requests is switched on in this form."),
    )
    days = (found["end_date"] - found["start_date"]) // timedelta(days=1)
    return {**found, "days": days, "table": rules, "sampled": found["input_count"] < found["request_count"]}


def _limits(row: Mapping[str, Any]) -> str:
    low, high = share(row["refused_share_low"]), share(row["refused_share_high"])
    return f"{share(row['refused_share'])} ({low} to {high})"


def _details(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{item['detail']} {item['count']}" for item in row["details"] if item["detail"])


def _examples(visit: Visit, ids: Sequence[Any]) -> Any:
    return format_html("{} " * len(ids), *(_request(visit, one) for one in ids))
