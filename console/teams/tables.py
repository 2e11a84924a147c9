from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from analytics.queries.error_groups import team_refusals
from analytics.queries.spend import NEVER, team_key_spends, team_spends
from console.settings_form.wording import LIMITS, rates_in_words
from core.models import ApiKey, Team
from core.selectors import api_key_names
from core.teams.services import TEAMS, teams_budget
from core.ui.formats import NONE, money, number
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Numbered, Table
from gateway.limits.keys import month_limits, month_of
from gateway.reports.team_warnings import team_warnings
from gateway.selectors import project_settings

_PAGE_ROWS = 100
RECENT = timedelta(hours=1)
# The part of a budget from which a team is warned about.
NEARLY = Decimal("0.8")


def month_now() -> tuple[datetime, datetime]:
    """Returns the start of this month and of the next, in UTC."""
    return month_limits(month_of(int(datetime.now(UTC).timestamp() * 1_000_000)))


def teams_table(visit: Visit) -> Table:
    """Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    found, listed = TEAMS.rows(visit.project.pk), Numbered(visit.request.GET, _PAGE_ROWS, reset=("team",))
    teams = list(found[listed.rows])
    spent = team_spends(visit.project.pk, {team.pk: (NEVER, NEVER) for team in teams}, month_now())
    settings, of_teams = project_settings(visit.project.pk), teams_budget(visit.project.pk)

    refused = refusals(visit)

    def state(team: Team) -> SafeString:
        marks = [*_marks(team, spent.get(team.pk, Decimal(0)), sum(refused.get(team.pk, {}).values()))]
        if team_warnings(team, settings, of_teams):
            marks.append(status("above the project", "warn"))
        return format_html_join(" ", "{}", ((mark,) for mark in marks or [status("within its limits", "good")]))

    return Table(
        caption="Teams, and what their keys spent this month, UTC",
        columns=[
            Column("name", "Team", lambda team: _name(visit, team)),
            Column("state", "State", state),
            Column("spent", "Spent", lambda team: money(spent.get(team.pk, Decimal(0))), is_numeric=True),
            Column("budget", "Of", lambda team: _budget(team), is_numeric=True),
            Column("limits", "Other limits", lambda team: "; ".join(rates_in_words(team)) or "none"),
            Column("keys", "Keys", lambda team: number(team.key_count), is_numeric=True),
            Column("members", "Members", lambda team: number(team.member_count), is_numeric=True),
        ],
        rows=teams,
        empty=Empty("This project has no team: its keys share the project's limits alone."),
        **listed.links(found.count()),
    )


def refusals(visit: Visit) -> Mapping[int, Mapping[str, int]]:
    """Counts the requests that team limits refused in the last hour, by team id and error code. Raises
    AnalyticsUnavailableError and AnalyticsLimitError."""
    since = datetime.now(UTC) - RECENT
    return team_refusals(visit.project.pk, since, [code for code in LIMITS if code.startswith("team_")])


def _marks(team: Team, spent: Decimal, refused: int) -> Iterator[SafeString]:
    """A team can be refused before its budget is spent, since requests reserve their cost."""
    if refused:
        yield status("refused", "bad", f"{number(refused)} refused in the last hour")
    budget = team.monthly_budget_usd
    if budget is not None and spent >= budget:
        yield status("over budget", "bad")
    elif budget is not None and spent >= NEARLY * budget:
        yield status("nearly used up", "warn")


def keys_table(visit: Visit, team: Team) -> Table:
    """Returns the team's keys, and former ones that spent in it this month. Raises AnalyticsUnavailableError and
    AnalyticsLimitError."""
    project_id = visit.project.pk
    spent = team_key_spends(project_id, team.pk, month_now())
    present = ApiKey.objects.for_project(project_id).filter(team=team, revoked_at=None)
    names = {**api_key_names(project_id, spent), **dict(present.values_list("pk", "name"))}
    of_team = set(present.values_list("pk", flat=True))
    return Table(
        caption=f"Keys of {team.name}, and what each spent in it this month, UTC",
        columns=[
            Column("name", "API key", lambda key: _key(visit, key, names)),
            Column("state", "State", lambda key: status("in the team", "good") if key in of_team else "has left it"),
            Column("spent", "Spent", lambda key: money(spent.get(key, Decimal(0))), is_numeric=True),
        ],
        rows=sorted(names.keys() | spent.keys(), key=lambda key: (-spent.get(key, Decimal(0)), key)),
        empty=Empty("No key belongs to this team.", visit.link_if_there("api_keys"), "See the API keys"),
    )


def _name(visit: Visit, team: Team) -> Any:
    return visit.linked(team.name, "teams", team=team.pk)


def _budget(team: Team) -> str:
    return NONE if team.monthly_budget_usd is None else money(team.monthly_budget_usd)


def _key(visit: Visit, key: int, names: Mapping[int, str]) -> Any:
    return visit.linked(names[key], "api_keys", key=key) if key in names else "a key that was deleted"
