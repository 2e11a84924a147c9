"""Small batches of many hosts are stored together, each record exactly once, whatever dies."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from pytest_django import Settings

from analytics.clickhouse import client, late_figures, visible
from analytics.clickhouse.migrator import migrate
from analytics.request_log.record import SpoolEntry
from analytics.shipper.already_stored import left_over
from analytics.shipper.columns import to_columns
from analytics.shipper.inserting import exchange
from analytics.shipper.inserting.exchange import Group
from analytics.shipper.inserting.handing_over import MAX_BYTES, MAX_ROWS, encoded
from analytics.shipper.inserting.inserter import Inserter
from analytics.spool.frames import encode_meta
from analytics.spool.reader import Frame
from analytics.spool.writer import SpoolWriter
from tests.analytics.inserting import POISON, World
from tests.analytics.place import InsertingPlace, place_in
from tests.analytics.request_counts import count_requests
from tests.factories.analytics import make_entry, store
from tests.night import cases, examples
from tests.services import START_SECONDS, Service, start_redis
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("clickhouse", "stores")


@pytest.fixture
def server(tmp_path: Path, settings: Settings) -> Iterator[Service]:
    server, settings.REDIS_URL = start_redis(tmp_path / "redis")
    yield server
    server.stop(signal.SIGKILL)


@pytest.fixture
def world(tmp_path: Path, server: Service, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, server, monkeypatch, seed=0)


def stored(project: UUID) -> list[str]:
    late_figures.settle()
    assert count_requests(project).consistent
    rows = client.execute("SELECT request_id FROM requests WHERE project_id = {p:UUID}", {"p": project})
    return sorted(str(request) for (request,) in rows)


@pytest.mark.parametrize("seed", cases(range(1, 6), by_day=[3]))
def test_records__hosts_inserters_and_redis_die_between_any_steps__each_counted_exactly_once(
    tmp_path: Path, server: Service, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    world = World(tmp_path, server, monkeypatch, seed=seed)

    world.live(deaths=examples(12, 50))

    assert stored(world.project) == sorted(world.good)
    assert sum(host.dead_letters() for host in world.hosts) == len(world.bad)


def test_batches__of_several_hosts__are_one_insert(world: World) -> None:
    written = [host.write(world.project) for host in world.hosts]
    world.begin()

    world.ship()

    assert stored(world.project) == sorted(written)
    assert world.inserted == [len(world.hosts)]


def test_batches__with_texts_to_share__have_them_in_the_store(world: World) -> None:
    body = b'{"messages": [{"role": "user", "content": "' + b"Where is my parcel? " * 400 + b'"}]}'
    written = [host.write(world.project, request=body) for host in world.hosts]
    world.begin()

    world.ship()

    of_project = {"p": world.project}
    shared = client.execute("SELECT text_id FROM shared_texts WHERE project_id = {p:UUID}", of_project)
    used = client.execute("SELECT arrayJoin(shared) FROM payloads WHERE project_id = {p:UUID}", of_project)
    assert set(shared) == set(used) != set()
    assert stored(world.project) == sorted(written)
    assert world.inserted == [len(world.hosts)]


def test_batches__refused_for_a_row_of_one_host__are_stored_without_it(world: World) -> None:
    world.hosts[0].write(world.project, POISON)
    written = [host.write(world.project) for host in world.hosts]
    world.begin()

    world.ship()
    world.ship()

    assert stored(world.project) == sorted(written)
    assert [host.dead_letters() for host in world.hosts] == [1, 0, 0, 0]


def test_batch__without_an_inserter__is_inserted_by_its_host(world: World) -> None:
    written = world.hosts[0].write(world.project)

    world.hosts[0].ship()

    assert stored(world.project) == [written]
    assert world.waits == 0


def test_batch__of_many_rows__is_inserted_by_its_host(world: World) -> None:
    written = [world.hosts[0].write(world.project) for _ in range(MAX_ROWS + 1)]
    world.begin()

    world.hosts[0].ship()

    assert stored(world.project) == sorted(written)
    assert world.waits == 0


def test_batch__large__is_inserted_by_its_host(world: World) -> None:
    written = world.hosts[0].write(world.project, request=b"{" + b" " * MAX_BYTES + b"}")
    world.begin()

    world.hosts[0].ship()

    assert stored(world.project) == [written]
    assert world.waits == 0


def test_batch__that_waits_when_the_last_inserter_leaves__is_inserted_by_its_host(world: World) -> None:
    written = world.hosts[0].write(world.project)
    world.begin()
    world.leave()

    world.hosts[0].ship()

    assert stored(world.project) == [written]
    assert world.waits > 0


def offered(entry: SpoolEntry, *, decided_at: int) -> None:
    columns = to_columns([Frame(0, 0, encode_meta(entry.record), entry.request, entry.response)])
    exchange.offer("token", encoded(columns), decided_at=decided_at, former="")


def test_offer__that_arrives_late__is_not_taken(server: Service) -> None:
    exchange.take("inserter", "group", room=1)
    offered(make_entry(), decided_at=1)
    assert exchange.take("inserter", "group", room=1) is None

    offered(make_entry(), decided_at=exchange.inserter_lives())
    assert exchange.take("inserter", "group", room=1) is not None


def test_group__that_redis_forgets_before_the_insert__is_not_inserted(
    server: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, take = make_entry(), exchange.take

    def forgotten(*arguments: Any, **options: Any) -> Group | None:
        group = take(*arguments, **options)
        exchange._redis().flushall()
        return group

    take("inserter", "group", room=1)
    offered(entry, decided_at=exchange.inserter_lives())
    monkeypatch.setattr(exchange, "take", forgotten)

    Inserter().insert_group()

    assert stored(UUID(entry.record.project_id)) == []


def test_rows__of_an_insert_that_runs__are_not_left_over(
    clickhouse: None, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = make_entry(b"{}", b"{}")
    frame = Frame(0, 0, encode_meta(entry.record), entry.request, entry.response)
    looks: list[datetime] = []

    def visible_until() -> datetime:
        if looks:
            store(spool, entry)
        looks.append(visible.store_time())
        return looks[-1] if len(looks) > 1 else looks[-1] - timedelta(seconds=10)

    monkeypatch.setattr(visible, "visible_until", visible_until)

    assert left_over(to_columns([frame])) == {}


def test_processes__killed_again_and_again__each_record_counted_exactly_once(
    tmp_path: Path, server: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", settings.REDIS_URL)
    written, project = list[str](), uuid4()
    with place_in(tmp_path / "place", settings, InsertingPlace) as place:
        migrate()
        writer = SpoolWriter(place.directory / "spool")

        def write(number: int) -> None:
            for _ in range(number):
                entry = make_entry(b"{}", b"{}", project_id=str(project), session_id="s", user_id="u")
                writer.append(entry)
                written.append(entry.record.request_id)

        wait_until(lambda: exchange.inserter_lives() > 0, seconds=START_SECONDS)
        write(1)
        wait_until(lambda: list(exchange._redis().scan_iter("*:answer:*")) or None, seconds=START_SECONDS)
        for kill in [place.kill_inserter, place.kill_shipper, place.kill_engine] * examples(1, 5):
            before = len(written)
            write(10)
            wait_until(lambda: count_requests(project).requests >= before, seconds=START_SECONDS)  # noqa: B023 - called at once
            kill()
        writer.close()
        wait_until(lambda: not list((place.directory / "spool").glob("*.seg")), seconds=START_SECONDS)

        assert stored(project) == sorted(written)
