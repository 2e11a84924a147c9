"""SIGKILL during traffic: every answer that a client received whole is recorded once, in the rows and in every
rollup."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import pytest

from tests.journeys.rows import Rows, read_rows, rows_when
from tests.journeys.traffic import Traffic, new_project
from tests.live.service import LiveService
from tests.night import examples

# At night a process starts ten times, one start after the other.
pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

KILLS = examples(2, 10)


def kill_during_traffic(
    service: LiveService,
    traffic: Traffic,
    roles: tuple[str, ...],
    *,
    answers: int,
    works: Callable[[], object] = lambda: None,
    kills: int = KILLS,
) -> None:
    with traffic:
        for _, role in zip(range(kills), cycle(roles), strict=False):
            traffic.wait_for_more(answers)
            killed = service.kill(role)
            service.wait_for_successor(role, killed)
            works()
        traffic.wait_for_more(answers)


def rows_with(service: LiveService, traffic: Traffic) -> Rows:
    def complete(rows: Rows) -> bool:
        return rows.consistent and set(traffic.succeeded) <= set(rows.outcomes)

    try:
        return rows_when(service, traffic.project.id, complete)
    except AssertionError:
        rows = read_rows(service, traffic.project.id)
        assert rows is not None, "the engine does not answer"
        missing = set(traffic.succeeded) - set(rows.outcomes)
        raise AssertionError(
            f"{len(traffic.succeeded)} succeeded, {len(missing)} without a row, {rows.total} rows, "
            f"{len(rows.outcomes)} ids, rollups {rows.rollups}"
        ) from None


def wait_until_shipping(service: LiveService, project_id: str) -> None:
    found = rows_when(service, project_id, lambda rows: True)
    rows_when(service, project_id, lambda rows: rows.total > found.total)


def test_web_worker__killed_again_and_again__every_success_has_one_row(journey_service: LiveService) -> None:
    traffic = Traffic(journey_service, new_project(journey_service, "kill web"), "kill-web")

    kill_during_traffic(journey_service, traffic, ("web-1", "web-2"), answers=30)

    rows = rows_with(journey_service, traffic)
    assert {rows.outcomes[request_id] for request_id in traffic.succeeded} == {"success"}
    # Rows beyond the successes are requests that died with their worker, which their clients saw fail.
    assert rows.total - len(traffic.succeeded) <= traffic.failures


@pytest.mark.parametrize("role", ["shipper", "engine"])
def test_record_keeper__killed_again_and_again__clients_notice_nothing_and_no_row_is_lost(
    journey_service: LiveService, role: str
) -> None:
    # No request meets the kill itself, as one does at a web worker: it is enough that records keep arriving.
    project = new_project(journey_service, f"kill {role}")
    traffic = Traffic(journey_service, project, f"kill-{role}", pause=0.05)

    # A successor is killed only after it has begun to work.
    kill_during_traffic(
        journey_service,
        traffic,
        (role,),
        answers=60,
        works=lambda: wait_until_shipping(journey_service, traffic.project.id),
    )

    rows = rows_with(journey_service, traffic)
    assert traffic.failures == 0
    assert rows.total == len(traffic.succeeded)
    assert set(rows.outcomes.values()) == {"success"}
