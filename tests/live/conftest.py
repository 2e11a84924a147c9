from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.live.prompts import SHORTENED
from tests.live.service import LiveService
from tests.migrated import place_database, place_tables

StartService = Callable[..., LiveService]


@pytest.fixture(scope="session")
def live_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    """The session's shared service; a test may kill its children, which are restarted, but must not stop it."""
    # Tests of provider keys and alerts have their provider and receiver on this machine.
    environment = {**SHORTENED, "ALLOW_PRIVATE_UPSTREAMS": "1"}
    service = LiveService(tmp_path_factory.mktemp("live") / "var", environment)
    try:
        yield service
        assert service.stop() == 0
    finally:
        _end(service)


@pytest.fixture
def start_service(tmp_path: Path) -> Iterator[StartService]:
    """`start_service(environment, arguments)` starts a service on the test's own VAR_DIR, at each call.

    With `prepared` it also waits until the analytics store has its tables. The service has one web worker unless
    WEB_WORKERS says otherwise, and finds its tables made unless `empty` is set: a worker's imports and the migrations
    are half of a start's CPU.
    """
    started: list[LiveService] = []

    def start(
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        *,
        empty: bool = False,
        prepared: bool = True,
    ) -> LiveService:
        if not empty and not (tmp_path / "var").exists():
            place_database(tmp_path / "var")
            if prepared:
                place_tables(tmp_path / "var" / "clickhouse")
        service = LiveService(
            tmp_path / "var", {"WEB_WORKERS": "1", **(environment or {})}, arguments, prepared=prepared
        )
        started.append(service)
        return service

    yield start
    for service in started:
        _end(service)


def _end(service: LiveService) -> None:
    if service.process.poll() is None:
        service.process.send_signal(signal.SIGKILL)
        service.process.wait()
