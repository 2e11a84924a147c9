"""The use of a team's, a key's and an end user's limits in `GET /api/llm/usage`."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
import redis

from core.models import ApiKey, Team
from gateway.limits.keys import Scope, caller_part, open_key, requests_key, tokens_key
from gateway.reports.caller_usage import key_usage, team_usage, user_usage
from gateway.tables.end_user import EndUserLimit
from tests.factories.core import make_key, make_project
from tests.gateway.test_usage_api import (
    MINUTE,
    NOW,
    PATH,
    api,
    certain,
    client,
    long_redis_timeout,
    make,
    spent_in_log,
)

__all__ = ["client", "long_redis_timeout"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]
NOTHING = {"used": None, "limit": None, "remaining": None}


def test_usage__of_a_key__is_what_redis_counts_and_the_log_where_it_does_not(client: redis.Redis, spool: Path) -> None:
    project = make_project()
    key, _ = make_key(project, name="shop")
    limits = {"rate_limit_rpm": 60, "max_concurrent_requests": 5, "monthly_budget_usd": Decimal(20)}
    ApiKey.objects.filter(pk=key.pk).update(**limits)
    key.refresh_from_db()
    part = caller_part(key.pk)
    client.set(requests_key(str(project.pk), MINUTE, part), 7)
    client.set(tokens_key(str(project.pk), MINUTE, part), 1200)
    client.zadd(open_key(str(project.pk), part), {"a": 10**13, "b": 10**13, "lapsed": 1})
    certain(client, Scope(str(project.pk), month="2026-11", key_id=key.pk), base=5 * 10**10)
    spent_in_log(spool, project, "3.0000000000", at=NOW, api_key_id=key.pk)
    spent_in_log(spool, project, "9.0000000000", at=NOW, api_key_id=key.pk + 1)

    assert key_usage(project.pk, key, NOW) == {
        "id": key.pk,
        "name": "shop",
        "requests": {"used": 7, "limit": 60, "remaining": 53},
        "tokens": NOTHING,
        "concurrent_requests": {"used": 2, "limit": 5, "remaining": 3},
        "month": {
            "spent_usd": 5.0,
            "reserved_usd": 0.0,
            "budget_usd": 20.0,
            "remaining_usd": 15.0,
            "is_certain": True,
        },
        "total": {
            "spent_usd": 3.0,
            "reserved_usd": 0.0,
            "budget_usd": None,
            "remaining_usd": None,
            "is_certain": True,
        },
    }


def test_usage__of_a_user__has_the_limits_by_name_or_those_for_every_user(spool: Path) -> None:
    project = make(end_user_rpm=10, end_user_monthly_budget_usd=Decimal(2))
    EndUserLimit.objects.create(project=project, user_id="named", rate_limit_tpm=500)
    spent_in_log(spool, project, "0.5000000000", at=NOW, user_id="any")

    anybody, named = (user_usage(project.pk, user, NOW) for user in ("any", "named"))

    assert anybody["requests"] == {"used": 0, "limit": 10, "remaining": 10}
    assert (anybody["month"]["spent_usd"], anybody["month"]["remaining_usd"]) == (0.5, 1.5)
    assert (named["requests"], named["tokens"]) == (NOTHING, {"used": 0, "limit": 500, "remaining": 500})
    assert (named["month"]["spent_usd"], named["month"]["budget_usd"]) == (0.0, None)


def test_usage__of_a_team__is_what_redis_counts_and_the_log_where_it_does_not(client: redis.Redis, spool: Path) -> None:
    project = make_project()
    team = Team.objects.create(
        project=project, name="Search", rate_limit_tpm=500, monthly_budget_usd=20, total_budget_usd=30
    )
    client.set(tokens_key(str(project.pk), MINUTE, caller_part(team_id=team.pk)), 120)
    certain(client, Scope(str(project.pk), month="2026-11", team_id=team.pk), base=5 * 10**10)
    for key, team_id, cost in ((1, team.pk, "3.0000000000"), (2, team.pk, "0.0000000001"), (1, 0, "9.0000000000")):
        spent_in_log(spool, project, cost, at=NOW, api_key_id=key, team_id=team_id)

    found = team_usage(project.pk, team, NOW)

    assert (found["id"], found["name"]) == (team.pk, "Search")
    assert (found["requests"], found["tokens"]) == (NOTHING, {"used": 120, "limit": 500, "remaining": 380})
    assert (found["month"]["spent_usd"], found["month"]["remaining_usd"]) == (5.0, 15.0)
    assert (found["total"]["spent_usd"], found["total"]["budget_usd"]) == (3.0000000001, 30.0)


def test_get__with_a_team__shows_it_and_refuses_one_of_another_project() -> None:
    project = make_project()
    team, foreign = (Team.objects.create(project=one, name="Search") for one in (project, make_project()))

    assert api(project).get(f"{PATH}?team_id={team.pk}").json()["team"]["id"] == team.pk
    assert api(project).get(f"{PATH}?team_id={foreign.pk}").status_code == 404


def test_get__with_key_and_user__shows_both_and_refuses_a_key_of_another_project() -> None:
    project = make_project()
    key, _ = make_key(project)
    foreign, _ = make_key(make_project())

    shown = api(project).get(f"{PATH}?key_id={key.pk}&user_id=ann").json()

    assert (shown["key"]["id"], shown["user"]["user_id"]) == (key.pk, "ann")
    assert {"key", "user"}.isdisjoint(api(project).get(PATH).json())
    assert api(project).get(f"{PATH}?key_id={foreign.pk}").status_code == 404
    refused = api(project).get(PATH, {"key_id": "x"})
    assert (refused.status_code, list(refused.json()["error"]["details"])) == (400, ["key_id"])
