from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from clickhouse_driver import Client
from clickhouse_driver import errors as driver_errors

from tests.gateway.service import free_port
from tests.live.conftest import StartService
from tests.live.service import ROOT, minimal_environment
from tests.live.start import Killer, killed_engines, later, store, without_store
from tests.live.test_readiness import ready
from tests.night import examples
from tests.services import START_SECONDS
from tests.waiting import wait_until

# `make coldstart` sends 1,000 requests in five minutes and kills 20 times.
_REQUESTS, _SECONDS, _KILLS, _SPAN_SECONDS = 30, 10.0, examples(2, 20), float(examples(5, 60))
_DEAD = "CREATE TABLE migration_lease_1 (none UInt8) ENGINE = Null COMMENT 'elsewhere process 1 beat 7'"


def test_start__no_store_until_later__serves_says_what_is_missing_and_every_row_is_there(
    start_service: StartService, tmp_path: Path
) -> None:
    port = free_port()
    service = start_service({"CLICKHOUSE_URL": later(port)}, empty=True, prepared=False)
    wait_until(lambda: ready(service.base_url).status_code == 200, what="a host that is ready for traffic")
    assert ready(service.base_url).json()["pending"] == ["analytics_migrations"]
    # A worker that does not know the key yet looks it up, and shows more the next time.
    wait_until(lambda: "checks" in ready(service.base_url, service.api_key).json(), what="details for the key")
    assert ready(service.base_url, service.api_key).json()["checks"]["migrations"] == "pending"

    figures = without_store(service, tmp_path / "store", port, requests_sent=_REQUESTS, seconds=_SECONDS)

    assert figures.is_right, figures
    assert set(figures.management) == {"503 analytics_unavailable retry-after=5"}
    assert service.log.count("analytics.not_prepared") == 1
    assert "Traceback" not in service.log


def test_start__engine_killed_again_and_again__nothing_ends_and_every_row_is_there_once(
    start_service: StartService, tmp_path: Path
) -> None:
    seed = random.randrange(10_000)
    killer = Killer(tmp_path / "var", kills=_KILLS, span_seconds=_SPAN_SECONDS, seed=seed)

    service, figures = killed_engines(lambda: start_service(empty=True, prepared=False), killer)

    assert figures.is_right, (seed, figures)
    assert figures.kills == _KILLS
    wait_until(lambda: "pending" not in ready(service.base_url).json(), what="the tables to be there")
    assert service.stop() == 0


def test_start__lease_of_a_dead_migrator__serves_meanwhile_and_is_prepared_in_the_end(
    start_service: StartService, tmp_path: Path
) -> None:
    port = free_port()
    with store(tmp_path / "store", port):
        wait_until(lambda: _executes(later(port), _DEAD), seconds=START_SECONDS, what="the store")
        service = start_service({"CLICKHOUSE_URL": later(port), "MIGRATION_LEASE_SECONDS": "5"}, prepared=False)

        assert ready(service.base_url).json()["pending"] == ["analytics_migrations"]
        service.wait_until_prepared()
        wait_until(lambda: "pending" not in ready(service.base_url).json(), what="the tables to be there")
        assert service.manage("metrics/providers/history").status_code == 200
        assert "lease.taken_over" in service.log
        assert service.stop() == 0


def test_start__no_migrate_and_tables_missing__serves_and_goes_on_once_they_are_made(
    start_service: StartService, tmp_path: Path
) -> None:
    port = free_port()
    address = {"CLICKHOUSE_URL": later(port)}
    with store(tmp_path / "store", port):
        service = start_service(address, ["--no-migrate"], prepared=False)
        wait_until(lambda: "analytics.not_prepared" in service.log, what="the log to name what is missing")
        assert "run `manage.py migrate_all` first" in service.log
        assert service.manage("metrics/providers/history").status_code == 503

        environment = {**minimal_environment(service.var_dir), **address}
        subprocess.run([sys.executable, "manage.py", "migrate_analytics"], cwd=ROOT, env=environment, check=True)
        service.wait_until_prepared()
        assert service.stop() == 0


def _executes(url: str, statement: str) -> bool:
    client = Client.from_url(url)
    try:
        client.execute(statement)
    except (driver_errors.NetworkError, EOFError, OSError):
        return False
    finally:
        client.disconnect()
    return True
