"""Stores and workers that are away: every answer that was due is done, or missing with a reason, and none twice."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from analytics.clickhouse import client
from analytics.errors import AnalyticsUnavailableError
from analytics.models import EvaluationBudget, EvaluationTask, OnlineEvaluation
from analytics.models.online_evaluations import TaskState
from analytics.online_evaluations.follow import follow_log
from gateway import tasks
from integrations.models import ModelPrice
from tests.factories.settings import make_settings
from tests.fakes.scripted import Step, hang
from tests.fakes.upstream import Connection, Received
from tests.gateway.evaluations.conftest import Scene
from tests.gateway.evaluations.online import ends, graded, judge, judge_all, take_samples
from tests.gateway.evaluations.outages import (
    answers,
    by_chance,
    check_ends,
    pass_time,
    start_worker,
    twenty_minutes_later,
    work,
    work_until_nothing_is_due,
)
from tests.gateway.limits.conftest import OwnRedis, fragile_redis
from tests.waiting import TIMEOUT_SECONDS

__all__ = ["fragile_redis"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]

_DONE, _UNDER_WAY, _ALL = 5, 16, 60
_WORKERS, _OF_WORKERS = 8, 400


def kill_a_worker(scene: Scene, folder: Path) -> None:
    """Kills a worker with SIGKILL while it has asked for some scores and the judge does not answer."""
    worker = start_worker(folder)
    try:
        scene.script.wait_for(_DONE + _UNDER_WAY)
    finally:
        worker.kill()
        worker.wait()


@pytest.mark.parametrize("scene", [[*[graded()] * _DONE, *[hang] * _UNDER_WAY, graded()]], indirect=True)
def test_worker__killed_and_away_for_ten_minutes__all_is_done_once(scene: Scene, tmp_path: Path) -> None:
    evaluation_id = judge(scene)
    request_ids = answers(scene, _ALL)
    take_samples()
    kill_a_worker(scene, tmp_path)

    pass_time(10)
    work(tmp_path)

    check_ends(evaluation_id, request_ids)
    assert Counter(ends(evaluation_id)) == {("done", ""): _ALL}
    assert len(scene.script.received) == _ALL + _UNDER_WAY


@pytest.mark.parametrize("scene", [[*[graded()] * _DONE, *[hang] * _UNDER_WAY, graded()]], indirect=True)
def test_worker__killed_and_away_for_longer_than_patience__the_rest_is_too_old(scene: Scene, tmp_path: Path) -> None:
    evaluation_id = judge(scene)
    request_ids = answers(scene, _ALL)
    take_samples()
    kill_a_worker(scene, tmp_path)
    done = EvaluationTask.objects.filter(state=TaskState.DONE).count()

    twenty_minutes_later()

    check_ends(evaluation_id, request_ids)
    assert Counter(ends(evaluation_id)) == {("done", ""): done, ("skipped", "too_old"): _ALL - done}


def _answer_and_stop(redis: OwnRedis, after: int) -> Step:
    """Returns a judge that stops Redis when it is asked for the `after`th time, and then answers."""
    asked, lock = [0], threading.Lock()

    async def step(request: Received, connection: Connection) -> None:
        with lock:
            asked[0] += 1
            if asked[0] == after:
                redis.service.stop()
        await graded()(request, connection)

    return step


def test_redis__goes_away_in_the_middle__judging_goes_on(scene: Scene, fragile_redis: OwnRedis, tmp_path: Path) -> None:
    make_settings(scene.project, rate_limit_enabled=True, rate_limit_rpm=100_000, monthly_budget_usd=100)
    evaluation_id = judge(scene)
    scene.script.steps[:] = [_answer_and_stop(fragile_redis, 20)]
    request_ids = answers(scene, _ALL)
    take_samples()

    work(tmp_path, REDIS_URL=fragile_redis.url)

    check_ends(evaluation_id, request_ids)
    assert Counter(ends(evaluation_id)) == {("done", ""): _ALL}


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_engine__away_while_it_is_judged__nothing_is_lost_or_asked_in_vain(scene: Scene, tmp_path: Path) -> None:
    evaluation_id = judge(scene)
    request_ids = answers(scene, _ALL)
    take_samples()

    work(tmp_path, CLICKHOUSE_URL="clickhouse://127.0.0.1:1/default")

    assert Counter(ends(evaluation_id)) == {("due", ""): _ALL}
    assert scene.script.received == []
    assert set(EvaluationTask.objects.values_list("tries", flat=True)) == {0}
    pass_time(10)
    work(tmp_path)
    check_ends(evaluation_id, request_ids)
    assert Counter(ends(evaluation_id)) == {("done", ""): _ALL}


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_engine__away_while_the_sample_is_taken__it_is_taken_later(scene: Scene, settings: Settings) -> None:
    evaluation_id = judge(scene)
    request_ids = answers(scene, 3)
    before = OnlineEvaluation.objects.get().sampled_until
    client.close()
    address, settings.CLICKHOUSE_URL = settings.CLICKHOUSE_URL, "clickhouse://127.0.0.1:1/default"

    with pytest.raises(AnalyticsUnavailableError):
        follow_log()
    tasks.follow_log()

    assert OnlineEvaluation.objects.get().sampled_until == before
    client.close()
    settings.CLICKHOUSE_URL = address
    take_samples()
    judge_all()
    check_ends(evaluation_id, request_ids)
    assert Counter(ends(evaluation_id)) == {("done", ""): 3}


@pytest.mark.parametrize("scene", [[by_chance(7)]], indirect=True)
def test_eight_workers__two_killed_and_the_budget_spent_in_the_middle(scene: Scene, tmp_path: Path) -> None:
    # A judgement reserves half a cent, and costs an eighth of a cent on average. What the two dead workers were asking
    # for counts as spent, up to 16 cents.
    evaluation_id = judge(scene, monthly_budget_usd=0.4)
    ModelPrice.objects.update(output_cost_per_1m=0)
    arms = [{"variant": variant, "session_id": variant} for variant in ("target", "baseline")]
    request_ids = [one for arm in arms for one in answers(scene, _OF_WORKERS // 2, **arm)]
    take_samples()
    # The minute may have changed between the arms: in one minute they stand by hash.
    EvaluationTask.objects.update(due_at=timezone.now())
    workers = [start_worker(tmp_path, f"worker-{number}") for number in range(_WORKERS)]
    try:
        scene.script.wait_for(50, 4 * TIMEOUT_SECONDS)
        for worker in workers[:2]:
            worker.kill()
        for worker in workers[2:]:
            assert worker.wait() == 0
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()

    pass_time(2)
    work_until_nothing_is_due(tmp_path)

    check_ends(evaluation_id, request_ids)
    found = Counter(ends(evaluation_id))
    assert found["done", ""] > 100
    assert found["skipped", "budget"] > 50
    assert EvaluationBudget.objects.get().spent_out_at is not None
    of_arm = [EvaluationTask.objects.filter(reason="budget", variant=arm["variant"]).count() for arm in arms]
    # Both arms stand in one queue by hash: by chance the shares differ by more in one of 15,000 runs.
    assert abs(of_arm[0] - of_arm[1]) < 4 * (sum(of_arm) * (_OF_WORKERS - sum(of_arm)) / _OF_WORKERS) ** 0.5
