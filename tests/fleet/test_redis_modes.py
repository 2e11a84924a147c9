from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from time import time_ns
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from analytics.shipper.inserting import exchange
from analytics.shipper.inserting.exchange import Group, Said
from core.redis.clients import background_client, shared_client
from gateway.cache.store import CachedAnswer, empty
from gateway.limits.figures import Figures, Spend
from gateway.limits.keys import Scope, month_of
from gateway.limits.limiter import Limiter
from gateway.limits.units import from_units
from gateway.project_settings.limits import ProjectLimits
from gateway.runtime.traced_requests import TracedRequests, traced_requests
from gateway.snapshot.announcements import announce
from gateway.worker.monitoring import ping_redis
from integrations.health.reader import _read
from integrations.health.targets import CircuitState
from tests.fleet.redis_uses import projects, uses
from tests.fleet.servers import redis_cluster, redis_sentinel, redis_server
from tests.integrations.health.test_redis_away import break_circuit
from tests.integrations.health.workers import new_target
from tests.waiting import TIMEOUT_SECONDS, eventually, wait_until

# Enough for each node of a cluster to hold some.
MANY = 12
MODES: dict[str, Any] = {"server": redis_server, "sentinel": redis_sentinel, "cluster": redis_cluster}


@pytest.fixture(scope="module", params=MODES)
def redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix="fleet-", dir="/tmp"))
    with MODES[request.param](folder) as servers:
        yield servers.url
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def configured(redis_url: str, settings: Settings) -> None:
    settings.REDIS_URL = redis_url


async def test_limits__two_workers__count_together(redis_url: str) -> None:
    limits = ProjectLimits(requests_per_minute=3)
    async with uses(redis_url) as one, uses(redis_url) as other:
        for project in projects(MANY):
            refused = [await worker.admit(project, limits) for worker in (one, other, one, other, one)]

            # The minute may end in between, and then the count starts afresh.
            assert refused in (["", "", "", "requests", "requests"], [*refused[:3], "", ""]) and refused.count("") >= 3


async def test_budget__whose_spend_the_log_has_confirmed__is_shown_from_redis(redis_url: str) -> None:
    limits, month = ProjectLimits(monthly_budget_usd=Decimal(100)), month_of(time_ns() // 1000)
    async with uses(redis_url) as one:
        for project in projects(MANY):
            scope = Scope(project, month=month)
            await one.admit(project, limits, cost=5)
            while not await _confirmed(one.limiter, scope):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.01)

            # Neither a log nor another Redis is asked, because this one is sure.
            shown = await sync_to_async(partial(_shown_once_settled, UUID(project), month))()

            assert (shown.spent_usd, shown.is_certain) == (from_units(5), True)


async def _confirmed(limiter: Limiter, scope: Scope) -> bool:
    """Tells Redis that the log has no other request; False while the test's request is open there."""
    since, *_ = await limiter.since(scope)
    return since is not None and await limiter.raise_to(scope, since, 0, final=True)


def _shown_once_settled(project_id: UUID, month: str) -> Spend:
    def settled() -> Spend | None:
        shown = Figures().month(project_id, month)
        return None if shown.reserved_usd else shown

    return wait_until(settled)


async def test_health__failures_at_one_worker__are_known_to_the_other_and_to_the_reader(redis_url: str) -> None:
    targets = [new_target() for _ in range(MANY)]
    async with uses(redis_url) as one, uses(redis_url) as other:
        for target in targets:
            one.health.note_success(target, 100.0)
        await eventually(lambda: all(other.health.health_of(target).samples == 1 for target in targets))
        ids = [target.integration_id for target in targets]
        found = await sync_to_async(_read)(ids, one.health.clock())

    assert [len(found[integration_id]) for integration_id in ids] == [1] * MANY


async def test_circuit__opened_at_one_worker__is_open_at_the_other(redis_url: str) -> None:
    targets = [new_target() for _ in range(MANY)]
    async with uses(redis_url) as one, uses(redis_url) as other:
        for target in targets:
            break_circuit(one.health, target)

        # It opens for some seconds, and is tried then.
        closed = CircuitState.CLOSED
        await eventually(lambda: all(other.health.health_of(target).circuit is not closed for target in targets))


async def test_minute_use__of_two_workers__adds_up(redis_url: str) -> None:
    targets = [new_target() for _ in range(MANY)]
    async with uses(redis_url) as one, uses(redis_url) as other:
        for worker in (one, other, one):
            for target in targets:
                worker.health.use.note(target.integration_id, requests=1)
            await worker.health.use.sync()

        # The minute may end in between.
        assert sum(one.health.use.is_used_up(target.integration_id, rpm=3, tpm=None) for target in targets) in (MANY, 0)


async def test_connections__many_at_once__all_find_the_server(redis_url: str) -> None:
    client = background_client(redis_url, connect_seconds=TIMEOUT_SECONDS)

    answers = await asyncio.gather(*(client.get(str(uuid4())) for _ in range(5 * MANY)))

    assert answers == [None] * 5 * MANY
    await client.aclose()


async def test_cache__emptied__forgets_one_project_on_whatever_node(redis_url: str) -> None:
    names = projects(MANY)
    async with uses(redis_url) as one, uses(redis_url) as other:
        for project in names:
            one.cache.put(f"svc:cache:{{{project}}}:a", CachedAnswer("p", "m", "stop", 2e9, project.encode()), 60)
        await eventually(lambda: not one.cache._puts)
        client = await sync_to_async(shared_client)(redis_url, seconds=TIMEOUT_SECONDS)
        emptied = [await sync_to_async(empty)(client, project) for project in names[1:]]
        left = [await other.cache.get_both(*(f"svc:cache:{{{p}}}:{c}" for c in "ab"), max_age=60) for p in names]

    assert emptied == [1] * (MANY - 1)
    assert [answer.content if answer else None for answer, _ in left] == [names[0].encode(), *[None] * (MANY - 1)]


async def test_announcement__of_a_thread__reaches_every_worker(redis_url: str) -> None:
    changed = [uuid4() for _ in range(3)]
    async with uses(redis_url) as one, uses(redis_url) as other:
        for project_id in changed:
            await sync_to_async(announce)(str(project_id))

        await eventually(lambda: one.changes.projects == other.changes.projects == changed)


async def test_traced_requests__announced__are_found_by_their_trace(redis_url: str) -> None:
    traces = {project: uuid4().hex for project in projects(MANY)}
    announcing = TracedRequests(redis_url)
    for number, (project, trace) in enumerate(traces.items()):
        announcing.begin(project, f"00-{trace}-00f067aa0ba902b7-01", number)
    await eventually(lambda: announcing.is_idle)
    await announcing.close()

    client = await sync_to_async(shared_client)(redis_url, seconds=TIMEOUT_SECONDS)
    for number, (project, trace) in enumerate(traces.items()):
        found = await sync_to_async(traced_requests)(client, UUID(project), [trace])
        assert found == {trace: [number]}


def test_batches__offered_by_hosts__are_taken_together_and_answered() -> None:
    exchange.take("inserter", "none", room=1)
    for token in ("one", "other"):
        exchange.offer(token, b"rows of " + token.encode(), decided_at=exchange.inserter_lives(), former="")
        assert exchange.ask(token) is Said.WAITS

    group = exchange.take("inserter", "group", room=1000)

    assert group == Group("group", ("one", "other"), (b"rows of one", b"rows of other"))
    assert exchange.may_insert(group)
    exchange.settle(group, Said.STORED)
    assert [exchange.answer(token) for token in ("one", "other", "third")] == [Said.STORED, Said.STORED, None]
    exchange.leave("inserter")
    assert not exchange.inserter_lives()
    assert exchange.ask("other") is Said.LOST


def test_monitor__asks_whether_redis_is_there__it_is(redis_url: str) -> None:
    ping_redis()
