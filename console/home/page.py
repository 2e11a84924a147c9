from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from analytics.parameters.ranges import TimeRange
from console.connect.box import waiting_box
from console.connect.connected import is_connected
from console.home.plots import home_plots
from console.home.tables import error_table, model_table, provider_table, rollout_table, user_table
from console.home.tiles import home_tiles
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.periods import CUSTOM
from gateway.reports.problems import find_problems
from gateway.reports.shapes import Problem, ProblemKind

_REFRESH_SECONDS = 60


_HOUR = {"range": "1h"}


@dataclass(frozen=True, slots=True)
class LinkedProblem:
    message: str
    kind: str
    label: str
    href: str
    link: str


def linked_problems(visit: Visit, problems: Sequence[Problem]) -> list[LinkedProblem]:
    return [_linked(visit, problem) for problem in problems]


def _linked(visit: Visit, problem: Problem) -> LinkedProblem:
    is_critical = problem["severity"] == "critical"
    link, href = _destination(visit, problem["kind"], problem["subject"])
    return LinkedProblem(
        problem["message"], "bad" if is_critical else "warn", "critical" if is_critical else "warning", href, link
    )


def _destination(visit: Visit, kind: ProblemKind, subject: str) -> tuple[str, str]:
    match kind:
        case "error_share":
            return "See the errors", visit.link("analytics_requests_changelist", outcome="error", **_HOUR)
        case "provider_down" | "provider_degraded":
            requests = visit.link("analytics_requests_changelist", outcome="error", provider=subject, **_HOUR)
            return "See the provider", visit.link_if_there("providers") or requests
        case "budget_spent" | "budget_forecast":
            return "See the spend", visit.link_if_there("usage", range="month") or visit.link_if_there("limits")
        case "rollout_rolled_back" | "rollout_watch_warned":
            return "See why", visit.link("rollouts_rollout_change", subject)
        case "alert_undelivered":
            # Others than budget alerts have no row of their own there.
            budget = visit.link("gateway_budgetalert_change", subject) if subject.isdecimal() else ""
            return "See the alert", budget or visit.link_if_there("alerts")
        case "alert_firing" | "alert_broken":
            return "See the alert", visit.link_if_there("alert", subject)
        case "trace_export_failing":
            return "See the destination", visit.link_if_there("trace_destinations", destination=subject)
        case _:
            return "", ""


class HomePage(Page):
    """Takes the place of Django's index, which is the page of all tables."""

    route = ""
    name = "index"
    title = "Home"

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        chosen = TimeRange(visit.period.start, visit.period.end)
        refreshed = partial(Panel, refresh_seconds=_REFRESH_SECONDS)
        of_log = partial(Panel.of_table, is_of_log=True)
        refreshed_table = partial(Panel.of_table, refresh_seconds=_REFRESH_SECONDS)
        return [
            refreshed("problems", "Now", "home/problems.html", partial(_problems, visit, chosen)),
            Panel("connect", "Connect an application", "home/connect.html", partial(_connect, visit)),
            refreshed("tiles", "Figures", "panels/tiles.html", partial(_tiles, visit), is_of_log=True),
            refreshed("plots", "Over time", "home/plots.html", partial(_plots, visit, chosen), is_of_log=True),
            refreshed_table("providers", "Providers, last five minutes", lambda: provider_table(visit)),
            of_log("codes", "Error codes", lambda: error_table(visit, chosen)),
            of_log("models", "Top models", lambda: model_table(visit, chosen)),
            of_log("users", "Top users", lambda: user_table(visit, chosen)),
            refreshed_table("rollouts", "Running rollouts", lambda: rollout_table(visit)),
        ]


def _problems(visit: Visit, chosen: TimeRange) -> Mapping[str, Any]:
    # A named range ends at the beginning of this second.
    end = chosen.end if visit.period.name == CUSTOM else datetime.now(UTC)
    found = find_problems(visit.project.pk, TimeRange(chosen.start, end))
    return {"problems": linked_problems(visit, found["problems"])}


def _connect(visit: Visit) -> Mapping[str, Any]:
    return {} if is_connected(visit.project.pk) else {"box": waiting_box(visit)}


def _tiles(visit: Visit) -> Mapping[str, Any]:
    return {"tiles": home_tiles(visit)}


def _plots(visit: Visit, chosen: TimeRange) -> Mapping[str, Any]:
    return {"plots": home_plots(visit, chosen)}
