"""A fleet under load, whose parts are killed in turn. No client sees an error but of what a killed host had open.

    FLEET_SECONDS=1200 FLEET_RATE=50 FLEET_STARTS=20 make fleet ARGS="-k acceptance --log-cli-level=INFO"

is the long form, which the night takes. The day has the same accidents behind Redis Sentinel, less load and shorter
calms.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fleet.installation import NAMES, Fleet
from tests.fleet.load import Failure, Load
from tests.journeys.rows import Rows
from tests.night import cases, examples
from tests.services import START_SECONDS
from tests.waiting import wait_until

SECONDS = float(os.environ.get("FLEET_SECONDS") or examples(20, 1200))
RATE = float(os.environ.get("FLEET_RATE") or examples(15, 25))
STARTS = int(os.environ.get("FLEET_STARTS") or examples(2, 20))
_LONG_SECONDS = 600
_ACCIDENTS = 4
_LIMIT = 10
# How long the hosts may differ.
_AGREE_SECONDS, _REVOKED_SECONDS = 5.0, 1.0
# What a pooler by transaction breaks where a connection is taken for one's own.
_BROKEN = re.compile(r"InvalidCursor|(portal|cursor|prepared statement) \S+ (does not exist|already exists)")

logger = logging.getLogger("tests.fleet")


@pytest.fixture(params=cases([False, True], by_day=[False]), ids=lambda cluster: "cluster" if cluster else "sentinel")
def fleet(request: pytest.FixtureRequest, folder: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        fleet = Fleet(folder, stack, cluster=request.param)
        fleet.start(*NAMES)
        while fleet.starts < STARTS:
            fleet.stop(*NAMES)
            fleet.start(*NAMES)
        yield fleet


@pytest.mark.timeout(SECONDS + 1200)
def test_acceptance__parts_are_killed_in_turn__no_client_sees_it_and_every_answer_has_its_row(fleet: Fleet) -> None:
    with Load(fleet.balancer.url, fleet.key, RATE) as load:
        calm = SECONDS / _ACCIDENTS
        load.go_on(calm)
        fleet.kill_redis_primary()
        _hosts_agree(fleet)
        load.go_on(calm)
        # Its loss takes a minute to be told, and has to do with no kind of Redis.
        if SECONDS >= _LONG_SECONDS or not fleet.is_cluster:
            _lose_the_scheduler(fleet)
        load.go_on(calm)
        # Whoever schedules now stays: this is about the requests of a web host.
        lost = next(name for name in NAMES if name != fleet.scheduler())
        fleet.kill(lost)
        load.go_on(calm / 2)
        fleet.start(lost)
        # A host that has never read a key knows nobody while the database is away.
        load.go_on(calm / 2)
        fleet.kill_postgresql()
        load.go_on(calm / 2)
        fleet.start_postgresql()
        wait_until(lambda: not fleet.alert("beat_stale") and fleet.scheduler(), what="a host to schedule again")
        load.go_on(calm)

    logger.info("%d answered, %d failed, %d starts", len(load.answered), len(load.failures), fleet.starts)
    assert [failure for failure in load.failures if not _was_open(failure, fleet)] == []
    rows = _rows(fleet, load)
    assert rows.consistent
    # Beside the answers there may be a row of each request that a killed host, or its client, did not see end.
    assert len(rows.outcomes.keys() - set(load.answered)) <= len(load.failures) + fleet.own_requests
    _hosts_agree(fleet)
    _revoked_everywhere(fleet)
    assert _BROKEN.search(fleet.logs()) is None


def _lose_the_scheduler(fleet: Fleet) -> None:
    lost = wait_until(fleet.scheduler, what="a host to schedule")
    fleet.kill(lost)
    began = time.monotonic()
    wait_until(lambda: fleet.scheduler(other_than=lost), what="another host to schedule")
    logger.info("another host schedules after %.1f s", time.monotonic() - began)
    wait_until(lambda: fleet.alert("host_silent", lost), seconds=2 * START_SECONDS, what="the alert of the lost host")
    logger.info("the lost host was told of after %.1f s", time.monotonic() - began)
    fleet.start(lost)
    wait_until(lambda: not fleet.alert("host_silent", lost), seconds=3 * START_SECONDS, what="the end of the alert")


def _was_open(failure: Failure, fleet: Fleet) -> bool:
    return any(failure.began <= loss.ended and failure.ended >= loss.began for loss in fleet.losses)


def _hosts_agree(fleet: Fleet) -> None:
    """A key that may ask ten times a minute asks each of two hosts eight times."""
    began = asked = time.monotonic()
    one, other = list(fleet.hosts)[:2]

    def agree() -> bool:
        nonlocal asked
        asked = time.monotonic()
        _, key = fleet.make_key(rate_limit_rpm=_LIMIT)
        statuses = [fleet.ask(name, key) for _ in range(8) for name in (one, other)]
        return statuses.count(200) == _LIMIT and statuses.count(429) == len(statuses) - _LIMIT

    wait_until(agree, what="two hosts to count together")
    # What the questions themselves take is not what the hosts need to agree.
    logger.info("two hosts count together after %.1f s", asked - began)
    assert asked - began < _AGREE_SECONDS


def _revoked_everywhere(fleet: Fleet) -> None:
    key_id, key = fleet.make_key()
    assert [fleet.ask(name, key) for name in fleet.hosts] == [200] * len(NAMES)
    fleet.revoke(key_id)
    began = asked = time.monotonic()

    def refuse() -> bool:
        nonlocal asked
        asked = time.monotonic()
        return [fleet.ask(name, key) for name in fleet.hosts] == [401] * len(NAMES)

    wait_until(refuse, what="all to refuse")
    logger.info("revoked everywhere after %.2f s", asked - began)
    assert asked - began < _REVOKED_SECONDS


def _rows(fleet: Fleet, load: Load) -> Rows:
    """Waits until every answer has a row and the rollups have counted them."""
    seen: list[Rows] = []

    def complete() -> bool:
        seen[:] = [fleet.rows()]
        return seen[0].consistent and not set(load.answered) - seen[0].outcomes.keys()

    try:
        wait_until(complete, seconds=2 * START_SECONDS)
    except AssertionError:
        missing = set(load.answered) - seen[0].outcomes.keys()
        raise AssertionError(f"{len(missing)} of {len(load.answered)} answers have no row; {seen[0].rollups}") from None
    return seen[0]
