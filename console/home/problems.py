"""The line on top of Home: each problem with the page on which to look closer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.ui.pages import Visit
from gateway.reports.shapes import Problem, ProblemKind

_HOUR = {"range": "1h"}


@dataclass(frozen=True, slots=True)
class LinkedProblem:
    """A problem as Home shows it. `kind` is that of a badge, `label` what the badge says."""

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
    """Returns what the link says and where it leads; both are empty where no page shows more."""
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
