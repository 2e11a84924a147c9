"""The tables of the page of teams: all teams with what they spent, and the keys of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.core.paginator import Paginator
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from analytics.queries.spend import NEVER, team_key_spends, team_spends
from analytics.queries.team_refusals import team_refusals
from console.settings_form.wording import LIMITS, rates_in_words
from core.models import ApiKey, Team
from core.selectors import api_key_names
from core.teams.services import list_teams, teams_budget
from core.ui.formats import NONE, money, number
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Table, page_link
from gateway.limits.keys import month_limits, month_of
from gateway.reports.team_warnings import team_warnings
from gateway.selectors import project_settings

_PAGE_ROWS = 100
RECENT = timedelta(hours=1)
# The part of a budget from which a team is warned about.
NEARLY = Decimal("0.8")


def month_now() -> tuple[datetime, datetime]:
    """Returns the beginning of the present month and that of the next, UTC."""
    return month_limits(month_of(int(datetime.now(UTC).timestamp() * 1_000_000)))


def teams_table(visit: Visit) -> Table:
    """Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    page = Paginator(list_teams(visit.project.pk), _PAGE_ROWS).get_page(visit.request.GET.get("p"))
    teams, query = list(page), visit.request.GET
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
        query=query,
        empty=Empty("This project has no team: its keys share the project's limits alone."),
        next_url=page_link(query, p=str(page.number + 1), team="") if page.has_next() else "",
        previous_url=page_link(query, p=str(page.number - 1), team="") if page.has_previous() else "",
        count=page.paginator.count,
    )


def refusals(visit: Visit) -> Mapping[int, Mapping[str, int]]:
    """Returns the requests of the last hour that limits of teams refused, by the id of the team and the error code.
    Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    since = datetime.now(UTC) - RECENT
    return team_refusals(visit.project.pk, since, [code for code in LIMITS if code.startswith("team_")])


def _marks(team: Team, spent: Decimal, refused: int) -> Iterator[SafeString]:
    """Yields what is wrong with a team. What its requests would reserve is refused before all of a budget is spent."""
    if refused:
        yield status("refused", "bad", f"{number(refused)} refused in the last hour")
    budget = team.monthly_budget_usd
    if budget is not None and spent >= budget:
        yield status("over budget", "bad")
    elif budget is not None and spent >= NEARLY * budget:
        yield status("nearly used up", "warn")


def keys_table(visit: Visit, team: Team) -> Table:
    """Returns the keys that are in the team, and those that have left it and spent in it this month. Raises
    AnalyticsUnavailableError and AnalyticsLimitError."""
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


def _name(visit: Visit, team: Team) -> SafeString:
    return format_html('<a href="{}">{}</a>', visit.link("teams", team=team.pk), team.name)


def _budget(team: Team) -> str:
    return NONE if team.monthly_budget_usd is None else money(team.monthly_budget_usd)


def _key(visit: Visit, key: int, names: Mapping[int, str]) -> Any:
    shown = names.get(key, "a key that was deleted")
    href = visit.link_if_there("api_keys", key=key) if key in names else ""
    return format_html('<a href="{}">{}</a>', href, shown) if href else shown
