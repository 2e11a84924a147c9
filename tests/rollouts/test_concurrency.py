"""Calls at the same time, on PostgreSQL, each with its own connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from rollouts.models import Rollout, RolloutTransition
from tests.rollouts.conftest import PATH, Api, client_of, new_api

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    barrier = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        try:
            barrier.wait()
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def posts(api: Api, *paths: str, body: dict[str, Any] | None = None) -> Counter[int]:
    clients = [client_of(api.project) for _ in paths]
    calls = [partial(client.post, path, body or {}) for client, path in zip(clients, paths, strict=True)]
    return Counter(response.status_code for response in at_once(*calls))


@pytest.mark.parametrize("callers", [2, 6])
def test_promote__several_at_once__one_stage_further(callers: int) -> None:
    api = new_api()
    rollout_id = api.created()["id"]
    api.move(rollout_id, "start")
    for stage in range(2, 5):
        answers = posts(api, *[f"{PATH}/{rollout_id}/promote"] * callers)
        assert answers == {200: 1, 409: callers - 1}
        assert api.get(rollout_id)["current_stage"] == stage
    assert RolloutTransition.objects.filter(rollout_id=rollout_id, action="promote").count() == 3


def test_create__two_of_one_config_at_once__one_wins() -> None:
    api = new_api()
    body = {"config_id": str(api.config.pk), "target_version_id": api.target, "name": "n"}
    assert posts(api, PATH, PATH, body=body) == {201: 1, 409: 1}
    assert Rollout.objects.filter(config=api.config).count() == 1


def test_start__twice_at_once__one_wins() -> None:
    api = new_api()
    rollout_id = api.created()["id"]
    assert posts(api, *[f"{PATH}/{rollout_id}/start"] * 2) == {200: 1, 409: 1}


def test_complete_and_rollback__at_once__one_wins_and_the_config_agrees() -> None:
    api = new_api()
    for _ in range(5):
        rollout_id = api.created()["id"]
        api.move(rollout_id, "start")
        assert posts(api, f"{PATH}/{rollout_id}/complete", f"{PATH}/{rollout_id}/rollback") == {200: 1, 409: 1}
        row = Rollout.objects.select_related("config").get(pk=rollout_id)
        assert row.config.has_active_rollout is False
        won = row.status == "completed"
        assert (str(row.config.active_version_id) == api.target) is won
        if won:
            return


def test_create_while_the_last_one_ends__at_once__never_a_deadlock() -> None:
    api = new_api()
    body = {"config_id": str(api.config.pk), "target_version_id": api.target, "name": "n"}
    rollout_id = api.created()["id"]
    for _ in range(5):
        ended, created = at_once(
            partial(client_of(api.project).post, f"{PATH}/{rollout_id}/rollback"),
            partial(client_of(api.project).post, PATH, body),
        )
        assert ended.status_code == 200
        assert created.status_code in (201, 409)
        rollout_id = created.json()["id"] if created.status_code == 201 else api.created()["id"]
