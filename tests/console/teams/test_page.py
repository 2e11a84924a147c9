from __future__ import annotations

from pathlib import Path
from time import time_ns
from typing import Any

import pytest
from django.test import Client

from analytics.request_log.record import Outcome
from core.models import ApiKey, AuditEntry, Project, Team, TeamMember
from core.roles import Role
from tests.console.conftest import sent, shown, signed_in, text_of
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key, make_staff
from tests.factories.settings import make_settings
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]
PATH, KEYS = "/admin/teams/", "/admin/keys/api/"


@pytest.fixture
def team(project: Project) -> Team:
    return Team.objects.create(project=project, name="Search", monthly_budget_usd="2")


def key_of(project: Project, team: Team | None, name: str) -> ApiKey:
    key, _ = make_key(project, name=name)
    ApiKey.objects.filter(pk=key.pk).update(team=team)
    return key


def sent_to(client: Client, team: Team, **values: str) -> Any:
    return client.post(f"{PATH}?project={team.project_id}&team={team.pk}", values)


def spend(spool: Path, project: Project, team: Team, key: ApiKey, cost: str) -> None:
    entry = make_entry(
        project_id=project.pk, team_id=team.pk, api_key_id=key.pk, ts=time_ns() // 1000, cost_known=True, cost_usd=cost
    )
    store(spool, entry)


def test_team__made_and_changed__is_saved_and_audited(administrator: Client, project: Project) -> None:
    made = sent(administrator, project, PATH, action="save", name="Search", monthly_budget_usd="1.5")
    assert made.status_code == 302
    row = Team.objects.get(project=project)
    assert f"team={row.pk}" in made["Location"]

    assert 'value="1.5"' in shown(administrator, project, PATH, team=row.pk)
    sent_to(administrator, row, action="save", name="Find", monthly_budget_usd="", rate_limit_rpm="7")

    row.refresh_from_db()
    assert (row.name, row.monthly_budget_usd, row.rate_limit_rpm) == ("Find", None, 7)
    assert [(one.operation, one.object_kind) for one in AuditEntry.objects.order_by("pk")] == [("teams", "team")] * 2


@tabled
def test_team__bad_value__said_at_the_field_and_nothing_saved(
    administrator: Client, project: Project, team: Team, values: dict[str, str], said: str
) -> None:
    answer = sent(administrator, project, PATH, action="save", **values)

    assert said in text_of(answer)
    assert Team.objects.count() == 1


def test_members__added_made_leads_and_taken_out(administrator: Client, project: Project, team: Team) -> None:
    make_staff(Role.READER, project, name="ann")
    sent_to(administrator, team, action="add_member", username="ann")
    assert [(one.membership.user.username, one.is_lead) for one in TeamMember.objects.all()] == [("ann", False)]
    sent_to(administrator, team, action="change_lead", username="ann")
    assert TeamMember.objects.get().is_lead
    sent_to(administrator, team, action="remove_member", username="ann")
    assert not TeamMember.objects.exists()
    sent_to(administrator, team, action="add_member", username="nobody")
    assert "no member of this name" in shown(administrator, project, PATH, team=team.pk)


def test_delete__with_keys__moves_them_where_it_was_said(administrator: Client, project: Project, team: Team) -> None:
    other, key = Team.objects.create(project=project, name="Ads"), key_of(project, team, "indexer")
    sent_to(administrator, team, action="delete")
    assert "say where they go" in shown(administrator, project, PATH, team=team.pk)
    sent_to(administrator, team, action="delete", keys_to=str(other.pk))

    key.refresh_from_db()
    assert (key.team, Team.objects.get()) == (other, other)
    assert "Search is deleted" in shown(administrator, project, PATH)


def test_page__shows_the_month_s_spend_and_what_each_key_spent_in_the_team(
    administrator: Client, project: Project, team: Team, spool: Path
) -> None:
    present, moved = key_of(project, team, "indexer"), key_of(project, None, "crawler")
    spend(spool, project, team, present, "0.5000000000")
    spend(spool, project, team, moved, "1.7500000000")

    text = shown(administrator, project, PATH, team=team.pk)

    assert "over budget" in text
    # It is in the tiles of the month and of all time, and in the list of teams.
    assert text.count("$2.25") == 3
    for name, cost, state in (("indexer", "$0.50", "in the team"), ("crawler", "$1.75", "has left it")):
        row = text[text.index(f">{name}<") :].partition("</tr>")[0]
        assert cost in row
        assert state in row
    usage = shown(administrator, project, "/admin/usage/", group_by="team")
    assert ">Search</a>" in usage
    assert f"team_id={team.pk}" in usage
    team_id = team.pk
    team.delete()
    assert f">deleted team {team_id}</a>" in shown(administrator, project, "/admin/usage/", group_by="team")


def test_team__that_refuses_before_all_is_spent__says_so_with_a_link_to_the_requests(
    administrator: Client, project: Project, team: Team, spool: Path
) -> None:
    key = key_of(project, team, "indexer")
    spend(spool, project, team, key, "1.9999000000")
    refused: dict[str, Any] = {
        "outcome": Outcome.ERROR,
        "status_code": 429,
        "error_code": "team_monthly_budget_exceeded",
    }
    ids: dict[str, Any] = {"cost_usd": "", "project_id": project.pk, "team_id": team.pk, "api_key_id": key.pk}
    store(spool, *(make_entry(ts=time_ns() // 1000, **ids, **refused) for _ in range(3)))
    before = time_ns() // 1000 - 3601 * 10**6
    store(spool, make_entry(ts=before, **ids, **refused))

    text = shown(administrator, project, PATH, team=team.pk)

    assert text.count("3 refused in the last hour") == 2
    assert f"team_id={team.pk}&error_code=team_monthly_budget_exceeded" in text
    assert "nearly used up" in text
    assert "over budget" not in text


def test_reader_lead_and_administrator__see_what_is_for_them(project: Project, team: Team) -> None:
    key_of(project, team, "indexer")
    reader = signed_in(project, Role.READER_WITHOUT_CONTENT)
    lead = Client()
    person = make_staff(Role.READER, project, name="lee")
    lead.force_login(person)
    TeamMember.objects.create(team=team, membership=person.memberships.get(), is_lead=True)
    other = Team.objects.create(project=project, name="Ads")
    key_of(project, other, "bidder")

    for client, sees_keys in ((reader, False), (lead, True), (signed_in(project, Role.ADMINISTRATOR), True)):
        assert "Search" in shown(client, project, PATH)
        assert ("indexer" in shown(client, project, PATH, team=team.pk)) is sees_keys
    text = shown(lead, project, PATH, team=other.pk)
    assert "bidder" not in text
    assert "Save" not in text
    for client in (reader, lead):
        assert sent_to(client, team, action="save", name="Mine").status_code == 403
    assert not Team.objects.filter(name="Mine").exists()


def test_team_above_its_project__is_warned_about_with_the_limit_s_label(
    administrator: Client, project: Project, team: Team
) -> None:
    make_settings(project, monthly_budget_usd="1")

    text = shown(administrator, project, PATH, team=team.pk)

    assert "Budget of a month" in text
    assert "Is above the project's budget of a month, 1" in text


@pytest.mark.parametrize("team_id", ["0", "x", "9" * 30, "-1"])
def test_team_that_is_not_there__404(administrator: Client, project: Project, team_id: str) -> None:
    assert administrator.get(PATH, {"project": str(project.pk), "team": team_id}).status_code == 404


def test_key__is_put_into_a_team_on_the_page_of_keys(administrator: Client, project: Project, team: Team) -> None:
    sent(administrator, project, KEYS, action="make", name="indexer", scopes="gateway", team_id=str(team.pk))
    key = ApiKey.objects.get(name="indexer")
    assert key.team == team
    assert "Search" in shown(administrator, project, KEYS)

    administrator.post(
        f"{KEYS}?project={project.pk}&key={key.pk}", {"action": "change", "name": "indexer", "team_id": ""}
    )

    key.refresh_from_db()
    assert key.team is None
