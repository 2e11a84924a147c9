from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from core.models import Team
from gateway.project_settings.settings import ProjectSettings

TEAM_WARNING_CODES = ("above_project", "teams_above_project")


class TeamWarning(NamedTuple):
    """A warning about a team's limit that is above the project's own. `code` is stable, while the words may change."""

    field: str
    code: str
    message: str


def team_warnings(team: Team, settings: ProjectSettings, of_teams: Decimal) -> list[TeamWarning]:
    return [*_above_project(team, settings), *_teams_above_project(team, settings, of_teams)]


def _above_project(team: Team, settings: ProjectSettings) -> Iterator[TeamWarning]:
    limits: list[tuple[str, Decimal | int | None, str]] = [
        ("monthly_budget_usd", settings.monthly_budget_usd, "budget of a month")
    ]
    if settings.rate_limit_enabled:
        limits += [
            ("rate_limit_rpm", settings.rate_limit_rpm, "limit of requests per minute"),
            ("rate_limit_tpm", settings.rate_limit_tpm, "limit of tokens per minute"),
        ]
    for field, of_project, what in limits:
        of_team = getattr(team, field)
        if of_team is not None and of_project is not None and of_team > of_project:
            problem = f"Is above the project's {what}, {_shown(of_project)}, which is reached first."
            yield TeamWarning(field, "above_project", problem)


def _teams_above_project(team: Team, settings: ProjectSettings, of_teams: Decimal) -> Iterator[TeamWarning]:
    budget = settings.monthly_budget_usd
    if budget is None or team.monthly_budget_usd is None or not team.monthly_budget_usd <= budget < of_teams:
        return
    problem = (
        f"The budgets of all teams come to {_shown(of_teams)} a month, more than the project's {_shown(budget)}: it may"
        " be used up before this team's is."
    )
    yield TeamWarning("monthly_budget_usd", "teams_above_project", problem)


def _shown(amount: Decimal | int) -> str:
    return f"{Decimal(amount).normalize():f}"
