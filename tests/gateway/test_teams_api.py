"""`/api/llm/teams` over HTTP: making, changing and deleting teams, their members, and the keys in them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from rest_framework.test import APIClient

from core.keys.services import project_keys, team_limits
from core.models import ApiKey, AuditEntry, Project, Team, TeamMember
from core.roles import Role
from tests.factories.core import make_key, make_project, make_staff
from tests.factories.settings import make_settings

pytestmark = pytest.mark.django_db
PATH, KEYS = "/api/llm/teams", "/api/llm/keys"
LIMITS: dict[str, Any] = {
    "monthly_budget_usd": 2.5,
    "total_budget_usd": 40.0,
    "rate_limit_rpm": 10,
    "rate_limit_tpm": 20_000,
    "max_concurrent_requests": 3,
}


def made(api: APIClient, name: str, **limits: Any) -> dict[str, Any]:
    answer = api.post(PATH, {"name": name, **limits})
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()
    return found


def refused(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_post__then_get_patch_delete(api: APIClient, project: Project) -> None:
    body = made(api, "Search", **LIMITS)
    one = f"{PATH}/{body['id']}"
    assert {name: body[name] for name in LIMITS} == LIMITS
    assert (body["key_count"], body["member_count"], body["warnings"]) == (0, 0, [])
    assert api.get(one).json() == body
    assert api.get(PATH).json()["results"] == [body]

    changed = api.patch(one, {"rate_limit_rpm": None, "name": "Find"}).json()

    assert (changed["name"], changed["rate_limit_rpm"], changed["rate_limit_tpm"]) == ("Find", None, 20_000)
    assert api.patch(one, changed).status_code == 200
    limits = team_limits(project.pk)[body["id"]]
    assert (limits.requests_per_minute, limits.concurrent_requests, limits.monthly_budget_usd) == (
        None,
        3,
        Decimal("2.5"),
    )
    assert api.delete(one).status_code == 204
    assert api.get(one).status_code == 404
    entries = AuditEntry.objects.for_project(project.pk).order_by("pk")
    assert [(entry.operation, entry.object_kind, entry.object_label) for entry in entries] == [
        ("createTeam", "team", "Search"),
        ("changeTeam", "team", "Find"),
        ("deleteTeam", "team", "Find"),
    ]


def test_name__that_another_team_of_the_project_has__conflict(api: APIClient) -> None:
    Team.objects.create(project=make_project(), name="Search")
    made(api, "Search")
    other = made(api, "Other")
    assert [one["name"] for one in api.get(PATH).json()["results"]] == ["Other", "Search"]
    assert refused(api.post(PATH, {"name": "Search"})) == (409, "team_exists")
    assert refused(api.patch(f"{PATH}/{other['id']}", {"name": "Search"})) == (409, "team_exists")


def test_key__is_made_in_a_team_moved_and_taken_out(api: APIClient, project: Project) -> None:
    search, ads = made(api, "Search", rate_limit_rpm=5), made(api, "Ads")
    key = api.post(KEYS, {"name": "k", "scopes": ["gateway"], "team_id": search["id"]}).json()
    assert key["team_id"] == search["id"]
    [record] = [one for one in project_keys(project.pk, team_limits(project.pk)) if one.id == key["id"]]
    assert record.team_limits is not None
    assert (record.team_id, record.team_limits.requests_per_minute) == (search["id"], 5)

    assert api.patch(f"{KEYS}/{key['id']}", {"team_id": ads["id"]}).json()["team_id"] == ads["id"]
    assert [api.get(f"{PATH}/{one['id']}").json()["key_count"] for one in (search, ads)] == [0, 1]
    assert api.patch(f"{KEYS}/{key['id']}", {"name": "still there"}).json()["team_id"] == ads["id"]
    assert api.patch(f"{KEYS}/{key['id']}", {"team_id": None}).json()["team_id"] is None
    entry = AuditEntry.objects.for_project(project.pk).filter(operation="changeApiKey").order_by("pk").first()
    assert entry is not None
    assert entry.changes["team"] == ["Search", "Ads"]


@pytest.mark.parametrize("team", ["foreign", 2**40, 0, "1", True])
def test_key__with_a_team_that_the_project_does_not_have__names_the_field(
    api: APIClient, project: Project, team: Any
) -> None:
    if team == "foreign":
        team = Team.objects.create(project=make_project(), name="Search").pk
    key, _ = make_key(project)
    for answer in (
        api.post(KEYS, {"name": "k", "scopes": ["gateway"], "team_id": team}),
        api.patch(f"{KEYS}/{key.pk}", {"team_id": team}),
    ):
        assert answer.status_code == 400
        assert list(answer.json()["error"]["details"]) == ["team_id"]


def test_delete__a_team_with_keys__is_refused_until_it_is_said_where_they_go(api: APIClient, project: Project) -> None:
    search, ads = made(api, "Search"), made(api, "Ads")
    rows = [make_key(project)[0] for _ in range(3)]
    ApiKey.objects.filter(pk__in=[row.pk for row in rows]).update(team_id=search["id"])
    one = f"{PATH}/{search['id']}"

    assert refused(api.delete(one)) == (409, "team_has_keys")
    foreign = Team.objects.create(project=make_project(), name="Search").pk
    for unusable in (str(search["id"]), str(foreign), "nobody", "-1"):
        assert api.delete(f"{one}?move_keys_to={unusable}").status_code == 400, unusable
    assert api.get(one).json()["key_count"] == 3

    assert api.delete(f"{one}?move_keys_to={ads['id']}").status_code == 204
    assert api.get(f"{PATH}/{ads['id']}").json()["key_count"] == 3
    assert api.delete(f"{PATH}/{ads['id']}?move_keys_to=none").status_code == 204
    assert set(ApiKey.objects.filter(pk__in=[row.pk for row in rows]).values_list("team", flat=True)) == {None}


def test_delete__a_team_with_revoked_keys_alone__needs_no_place_for_them(api: APIClient, project: Project) -> None:
    search = made(api, "Search")
    row, _ = make_key(project)
    ApiKey.objects.filter(pk=row.pk).update(team_id=search["id"])
    assert api.delete(f"{KEYS}/{row.pk}").status_code == 204

    assert api.delete(f"{PATH}/{search['id']}").status_code == 204

    row.refresh_from_db()
    assert row.team_id is None


def test_members__are_people_of_the_project_and_leave_with_their_membership(api: APIClient, project: Project) -> None:
    team = made(api, "Search")
    one = f"{PATH}/{team['id']}/members"
    ann, bob = make_staff(Role.READER, project, name="ann"), make_staff(Role.EDITOR, project, name="bob")
    make_staff(Role.EDITOR, make_project(), name="stranger")

    answer = api.put(one, {"members": [{"username": "ann", "is_lead": True}, {"username": "bob"}]})

    assert answer.json()["member_count"] == 2
    shown = api.get(one).json()["results"]
    assert shown == [
        {"username": "ann", "role": "reader", "is_lead": True},
        {"username": "bob", "role": "editor", "is_lead": False},
    ]
    assert api.put(one, {"members": shown}).status_code == 200
    for members, field in (
        ([{"username": "stranger"}], "members.0.username"),
        ([{"username": "ann"}, {"username": "nobody"}], "members.1.username"),
        ([{"username": "ann"}, {"username": "ann"}], "members.1.username"),
    ):
        wrong = api.put(one, {"members": members})
        assert (wrong.status_code, list(wrong.json()["error"]["details"])) == (400, [field])
    assert api.get(one).json()["results"] == shown

    ann.memberships.get().delete()
    assert [member.membership.user for member in TeamMember.objects.all()] == [bob]


def test_warnings__limits_that_the_project_has_lower__name_the_limit(api: APIClient, project: Project) -> None:
    make_settings(
        project, monthly_budget_usd=Decimal(100), rate_limit_enabled=True, rate_limit_rpm=60, rate_limit_tpm=None
    )
    above = made(api, "Above", monthly_budget_usd=100.5, rate_limit_rpm=61, rate_limit_tpm=10**6)
    assert [(one["field"], one["code"]) for one in above["warnings"]] == [
        ("monthly_budget_usd", "above_project"),
        ("rate_limit_rpm", "above_project"),
    ]
    assert "100" in above["warnings"][0]["message"]
    api.patch(f"{PATH}/{above['id']}", {"monthly_budget_usd": 60, "rate_limit_rpm": 60})

    other = made(api, "Other", monthly_budget_usd=40)
    assert other["warnings"] == []
    one_more = made(api, "One more", monthly_budget_usd=0.01)
    assert [(one["field"], one["code"]) for one in one_more["warnings"]] == [
        ("monthly_budget_usd", "teams_above_project")
    ]
    assert "100.01" in one_more["warnings"][0]["message"]
    assert made(api, "Without a budget")["warnings"] == []
    settings = api.get("/api/llm/settings").json()["warnings"]
    assert [(one["field"], one["code"]) for one in settings] == [("monthly_budget_usd", "teams_above_project")]
