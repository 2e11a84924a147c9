"""Simultaneous calls on PostgreSQL, each with its own connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import connection, transaction

from analytics.datasets.items import read_item
from analytics.datasets.services import add_items
from analytics.models import Dataset
from rollouts.models import Gate, Mode, Rollout, RolloutTransition
from rollouts.services import start_rollout
from rollouts.states import Stage
from rollouts.verdicts.evaluate import evaluate_running_rollouts
from tests.factories.core import client_of
from tests.factories.datasets import item_body, make_dataset
from tests.factories.gates import make_verdict
from tests.factories.rollouts import make_rollout
from tests.rollouts.conftest import PATH, Api, new_api, promoted
from tests.rollouts.request_log import RequestLog, begun

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
        # On a busy machine a thread may begin after another one has ended; only the time of arrival is the same.
        promote = partial(promoted, api, rollout_id, arrived_at=datetime.now(UTC))
        assert Counter(status for status, _ in at_once(*[promote] * callers)) == {200: 1, 409: callers - 1}
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


def test_evaluate__several_processes_at_once__one_decision(monkeypatch: pytest.MonkeyPatch, still_clock: None) -> None:
    log = RequestLog()
    log.take_the_place(monkeypatch)
    rollout = begun(make_rollout(started=True, mode=Mode.AUTO, stages=[Stage(w, 0, 0) for w in range(1, 9)]), 10)
    log.add(rollout, 5, target=(5, 0), baseline=(50, 0))

    found = at_once(*[evaluate_running_rollouts] * 5)

    assert sum(map(len, found)) == 1
    rollout.refresh_from_db()
    assert rollout.current_stage == 2


def test_evaluate_and_promote__at_once__one_stage_or_409(monkeypatch: pytest.MonkeyPatch, still_clock: None) -> None:
    log = RequestLog()
    log.take_the_place(monkeypatch)
    rollout = begun(make_rollout(started=True, mode=Mode.AUTO, stages=[Stage(w, 0, 0) for w in range(1, 9)]), 10)
    client = client_of(rollout.project)

    _, answer = at_once(evaluate_running_rollouts, partial(client.post, f"{PATH}/{rollout.pk}/promote"))

    moves = RolloutTransition.objects.filter(rollout=rollout, action="promote")
    rollout.refresh_from_db()
    assert rollout.current_stage == 1 + moves.count()
    # Either the person was first and the evaluation found another stage than it had judged, or vice versa.
    assert moves.count() == 1 or (answer.status_code, moves.count()) == (200, 2)


def test_create_and_delete_of_its_config__at_once__one_wins() -> None:
    for _ in range(3):
        api = new_api()
        body = {"config_id": str(api.config.pk), "target_version_id": api.target, "name": "n"}
        created, deleted = at_once(
            partial(client_of(api.project).post, PATH, body),
            partial(client_of(api.project).delete, f"/api/llm/prompts/configs/{api.config.pk}"),
        )
        assert (created.status_code, deleted.status_code) in {(201, 409), (404, 204)}


def until_it_waits(call: Future[Any]) -> bool:
    """Returns whether the call waits for a lock of this transaction, or False once it has ended without one."""
    waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
    with connection.cursor() as cursor:
        while not call.done():
            cursor.execute(waiting)
            if cursor.fetchone()[0]:
                return True
    return False


def gated() -> tuple[Rollout, Dataset]:
    """Returns a rollout whose gate is passed, and the data set of its experiment."""
    rollout = make_rollout(gate=Gate.EXPERIMENT)
    dataset = make_dataset(rollout.project)
    make_verdict(dataset, rollout.baseline_version, rollout.target_version)
    return rollout, dataset


def add_item(dataset: Dataset) -> None:
    add_items(project_id=dataset.project_id, dataset_id=dataset.pk, items=[read_item(item_body("New"))], actor="test")


def in_own_connection(call: Callable[[], Any]) -> Any:
    try:
        return call()
    finally:
        connection.close()


def test_gate__data_set_is_being_changed__start_waits_and_is_refused() -> None:
    rollout, dataset = gated()
    start = partial(client_of(rollout.project).post, f"{PATH}/{rollout.pk}/start")
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            add_item(dataset)
            started = pool.submit(in_own_connection, start)
            assert until_it_waits(started)
        answer = started.result()
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "gate_not_passed")
    assert "which is at version 2 now" in answer.json()["error"]["message"]


def test_gate__rollout_is_being_started__change_of_the_data_set_waits() -> None:
    rollout, dataset = gated()
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            start_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="user:ann")
            added = pool.submit(in_own_connection, partial(add_item, dataset))
            assert until_it_waits(added)
        added.result()
    dataset.refresh_from_db()
    [begun_by] = RolloutTransition.objects.filter(rollout=rollout, action="start")
    assert (begun_by.figures["gate"]["dataset_version"], dataset.version) == (1, 2)
