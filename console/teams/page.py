"""The page of teams. Readers see budgets and spend, leads also their team's keys, administrators change everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase

from console.settings_form.wording import LIMITS
from console.teams.forms import DeletionForm, NewMemberForm, TeamForm
from console.teams.tables import keys_table, refusals, teams_table
from core.errors import ApplicationError, ConflictError
from core.models import Team
from core.roles import Right
from core.teams.services import (
    change_team,
    create_team,
    delete_team,
    get_team,
    leads,
    list_members,
    replace_members,
    teams_budget,
)
from core.ui import formats
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page
from core.ui.tiles import Tile
from gateway.reports.caller_usage import team_usage
from gateway.reports.team_warnings import team_warnings
from gateway.selectors import project_settings

# A number of more digits may be larger than any that the databases take.
_ID_DIGITS = 18


@register_page
class TeamsPage(Page):
    route = "teams/"
    name = "teams"
    title = "Teams"
    template = "teams/page.html"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        row = _chosen(visit)
        return _shown(visit, row, TeamForm(row))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        found = [Panel.of_table("teams", "Teams of this project", lambda: teams_table(visit), is_wide=True)]
        row = _chosen(visit)
        if row is not None:
            found.insert(0, Panel("use", row.name, "teams/use.html", lambda: _use(visit, row), is_wide=True))
            if _sees_keys(visit, row):
                found.insert(1, Panel.of_table("keys", "Its keys", lambda: keys_table(visit, row), is_wide=True))
        return found

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.ADMINISTER)
        row, action = _chosen(visit), visit.request.POST.get("action", "")
        if row is None or action == "save":
            return self._save(visit, row)
        change = _CHANGES.get(action)
        if change is None:
            raise Http404("There is no such action.")
        try:
            messages.success(visit.request, change(visit, row))
        except ApplicationError as error:
            messages.error(visit.request, error.message)
        still_there = Team.objects.filter(pk=row.pk).exists()
        return HttpResponseRedirect(visit.link(self.name, team=row.pk if still_there else ""))

    def _save(self, visit: Visit, row: Team | None) -> HttpResponseBase:
        form, project_id = TeamForm(row, visit.request.POST), visit.project.pk
        if form.is_valid():
            try:
                saved = (
                    create_team(project_id, form.values)
                    if row is None
                    else change_team(project_id, row.pk, form.values)
                )
            except ConflictError as error:
                form.add_error("name" if error.code == "team_exists" else None, error.message)
            else:
                messages.success(visit.request, f"{saved.name}: saved, and known to every worker within a second.")
                return HttpResponseRedirect(visit.link(self.name, team=saved.pk))
        return self.render(visit, self.panels(visit), **_shown(visit, row, form))


def _chosen(visit: Visit) -> Team | None:
    """Returns the team that the address names by its id, None without one. Raises Http404."""
    team_id = visit.request.GET.get("team", "")
    if not team_id:
        return None
    if not (team_id.isascii() and team_id.isdecimal() and len(team_id) <= _ID_DIGITS):
        raise Http404("The project has no such team.")
    try:
        return get_team(visit.project.pk, int(team_id))
    except ApplicationError as error:
        raise Http404(error.message) from None


def _sees_keys(visit: Visit, row: Team) -> bool:
    return visit.may(Right.ADMINISTER) or row.pk in leads(visit.project.pk, visit.person.pk)


def _shown(visit: Visit, row: Team | None, form: TeamForm) -> dict[str, Any]:
    may_change, project_id = visit.may(Right.ADMINISTER), visit.project.pk
    found: dict[str, Any] = {
        "team": row,
        "form": form if may_change else None,
        "list_address": visit.link("teams"),
        "sees_keys": row is not None and _sees_keys(visit, row),
    }
    if row is not None:
        found["warnings"] = [
            (TeamForm.base_fields[one.field].label, one.message)
            for one in team_warnings(row, project_settings(project_id), teams_budget(project_id))
        ]
        found["limits_address"] = visit.link_if_there("limits")
        if may_change:
            found |= {"members": list_members(row), "new_member": NewMemberForm(row), "deletion": DeletionForm(row)}
    return found


def _use(visit: Visit, row: Team) -> dict[str, Any]:
    """Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    found = team_usage(visit.project.pk, row)
    month, total = found["month"], found["total"]
    is_over = any(one["remaining_usd"] == 0 for one in (month, total))
    tiles = [
        Tile(
            "Spent this month",
            formats.money(month["spent_usd"]),
            _of_budget(month),
            kind="bad" if is_over else "neutral",
        ),
        Tile("Spent in all", formats.money(total["spent_usd"]), _of_budget(total)),
        *(
            Tile(label, formats.number(found[name]["used"]), f"of {formats.number(found[name]['limit'])}")
            for name, label in _RATES.items()
            if found[name]["limit"] is not None
        ),
    ]
    refused = [
        {
            "text": f"{formats.number(count)} refused in the last hour: {LIMITS[code]}",
            "href": visit.link_if_there("analytics_requests_changelist", team_id=row.pk, error_code=code),
        }
        for code, count in refusals(visit).get(row.pk, {}).items()
    ]
    return {
        "is_over": is_over,
        "refused": refused,
        "tiles": tiles,
        "is_certain": month["is_certain"],
        "usage_address": visit.link_if_there("usage", group_by="team"),
        "requests_address": visit.link_if_there("analytics_requests_changelist", team_id=row.pk),
    }


_RATES = {
    "requests": "Requests this minute",
    "tokens": "Tokens this minute",
    "concurrent_requests": "Requests under way",
}


def _of_budget(spend: Mapping[str, Any]) -> str:
    if spend["budget_usd"] is None:
        return "no budget"
    return f"of {formats.money(spend['budget_usd'])}, {formats.money(spend['remaining_usd'])} left"


def _delete(visit: Visit, row: Team) -> str:
    delete_team(visit.project.pk, row.pk, keys_to=visit.request.POST.get("keys_to", ""))
    return f"{row.name} is deleted; what it spent stays in the request log."


def _change_members(visit: Visit, row: Team, change: Callable[[dict[str, bool], str], str]) -> str:
    members = {one.membership.user.get_username(): one.is_lead for one in list_members(row)}
    done = change(members, visit.request.POST.get("username", ""))
    rows = [{"username": name, "is_lead": is_lead} for name, is_lead in members.items()]
    replace_members(visit.project.pk, row.pk, rows)
    return done


def _add_member(visit: Visit, row: Team) -> str:
    is_lead = bool(visit.request.POST.get("is_lead"))

    def add(members: dict[str, bool], name: str) -> str:
        members[name] = is_lead
        return f"{name} belongs to {row.name} now."

    return _change_members(visit, row, add)


def _change_lead(visit: Visit, row: Team) -> str:
    def change(members: dict[str, bool], name: str) -> str:
        members[name] = not members.get(name, False)
        return f"{name} {'leads' if members[name] else 'does not lead'} {row.name} now."

    return _change_members(visit, row, change)


def _remove_member(visit: Visit, row: Team) -> str:
    def remove(members: dict[str, bool], name: str) -> str:
        members.pop(name, None)
        return f"{name} does not belong to {row.name} any more."

    return _change_members(visit, row, remove)


_CHANGES: Mapping[str, Callable[[Visit, Team], str]] = {
    "delete": _delete,
    "add_member": _add_member,
    "change_lead": _change_lead,
    "remove_member": _remove_member,
}
