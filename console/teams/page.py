"""Readers see budgets and spend, leads also their team's keys, administrators change everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http.response import HttpResponseBase

from console.limits.tiles import use_tiles
from console.settings_form.wording import LIMITS
from console.teams.forms import DeletionForm, NewMemberForm, TeamForm
from console.teams.tables import keys_table, refusals, teams_table
from core.models import Team
from core.roles import Right
from core.teams.services import (
    TEAMS,
    leads,
    list_members,
    replace_members,
    teams_budget,
)
from core.ui import formats
from core.ui.edit import EditPage, whole_number
from core.ui.pages import Visit
from core.ui.panels import Panel
from gateway.reports.caller_usage import team_usage
from gateway.reports.team_warnings import team_warnings
from gateway.selectors import project_settings


class TeamsPage(EditPage[Team | None, TeamForm]):
    route = "teams/"
    name = "teams"
    title = "Teams"
    has_range = False
    right = Right.ADMINISTER
    key = "team"
    form_class = TeamForm
    fields_of_codes = {"team_exists": "name"}

    def find(self, visit: Visit, given: str) -> Team:
        return TEAMS.get(visit.project.pk, whole_number(given))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        found = [Panel.of_table("teams", "Teams of this project", lambda: teams_table(visit), is_wide=True)]
        row = self.record(visit)
        if row is not None:
            found.insert(0, Panel("use", row.name, "teams/use.html", lambda: _use(visit, row), is_wide=True))
            if _sees_keys(visit, row):
                found.insert(1, Panel.of_table("keys", "Its keys", lambda: keys_table(visit, row), is_wide=True))
        return found

    def save(self, visit: Visit, record: Team | None, form: TeamForm) -> HttpResponseBase:
        values, project_id = form.values, visit.project.pk
        row = TEAMS.create(project_id, values) if record is None else TEAMS.change(project_id, record.pk, values)
        return self._done(visit, row, f"{row.name}: saved, and known to every worker within a second.")

    def shown(self, visit: Visit, record: Team | None, form: TeamForm) -> Mapping[str, Any]:
        if record is None:
            return {}
        project_id = visit.project.pk
        warnings = team_warnings(record, project_settings(project_id), teams_budget(project_id))
        found = {
            "sees_keys": _sees_keys(visit, record),
            "warnings": [(form.fields[one.field].label, one.message) for one in warnings],
            "limits_address": visit.link_if_there("limits"),
        }
        if visit.may(Right.ADMINISTER):
            found |= {"members": list_members(record), "new_member": NewMemberForm(record)}
            found["deletion"] = DeletionForm(record)
        return found

    def do_delete(self, visit: Visit, record: Team) -> HttpResponseBase:
        TEAMS.remove(visit.project.pk, record.pk, keys_to=visit.request.POST.get("keys_to", ""))
        said = f"{record.name} is deleted; what it spent stays in the request log."
        return visit.done(said, visit.link(self.name))

    def do_add_member(self, visit: Visit, record: Team) -> HttpResponseBase:
        members, name = _members(visit, record)
        members[name] = bool(visit.request.POST.get("is_lead"))
        return self._replace(visit, record, members, f"{name} belongs to {record.name} now.")

    def do_change_lead(self, visit: Visit, record: Team) -> HttpResponseBase:
        members, name = _members(visit, record)
        members[name] = not members.get(name, False)
        leads_now = "leads" if members[name] else "does not lead"
        return self._replace(visit, record, members, f"{name} {leads_now} {record.name} now.")

    def do_remove_member(self, visit: Visit, record: Team) -> HttpResponseBase:
        members, name = _members(visit, record)
        members.pop(name, None)
        return self._replace(visit, record, members, f"{name} does not belong to {record.name} any more.")

    def _replace(self, visit: Visit, record: Team, members: Mapping[str, bool], said: str) -> HttpResponseBase:
        rows = [{"username": name, "is_lead": is_lead} for name, is_lead in members.items()]
        replace_members(visit.project.pk, record.pk, rows)
        return self._done(visit, record, said)

    def _done(self, visit: Visit, record: Team, said: str) -> HttpResponseBase:
        return visit.done(said, self.address(visit, record))


def _members(visit: Visit, row: Team) -> tuple[dict[str, bool], str]:
    members = {one.membership.user.get_username(): one.is_lead for one in list_members(row)}
    return members, visit.request.POST.get("username", "")


def _sees_keys(visit: Visit, row: Team) -> bool:
    return visit.may(Right.ADMINISTER) or row.pk in leads(visit.project.pk, visit.person.pk)


def _use(visit: Visit, row: Team) -> dict[str, Any]:
    found = team_usage(visit.project.pk, row)
    month, total = found["month"], found["total"]
    is_over = any(one["remaining_usd"] == 0 for one in (month, total))
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
        "tiles": use_tiles(found),
        "is_certain": month["is_certain"],
        "usage_address": visit.link_if_there("usage", group_by="team"),
        "requests_address": visit.link_if_there("analytics_requests_changelist", team_id=row.pk),
    }
