from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.clients.agents.cells import BESIDE, CELLS, Cell, Outcome, play
from tests.clients.conftest import made
from tests.fakes.dialects.server import DialectServer
from tests.gateway.service import GatewayService

# Each program waits for the gateway half of its time.
SIDE_BY_SIDE = 3


@pytest.fixture(scope="session")
def agents() -> None:
    made("agents")


@pytest.fixture(scope="session")
def outcome_of(
    agents: None, service: GatewayService, request: pytest.FixtureRequest
) -> Iterator[Callable[[Cell], Outcome]]:
    with DialectServer() as server, ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        chosen = _chosen(request.session.items)
        running = {
            cell.name: pool.submit(play, cell, service, server) for cell in CELLS + BESIDE if cell.name in chosen
        }
        yield lambda cell: running[cell.name].result()


def _chosen(items: list[pytest.Item]) -> set[str]:
    tests = [item for item in items if isinstance(item, pytest.Function) and "outcome_of" in item.fixturenames]
    names = {cell.name for cell in CELLS + BESIDE}
    if any(not hasattr(test, "callspec") for test in tests):
        return names
    return {name for name in names if any(f"[{name}]" in test.name for test in tests)}
