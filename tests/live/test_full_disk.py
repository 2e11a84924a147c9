"""Runs `manage.py serve` on a disk that is full for a while: clients notice nothing, and no process needs a restart.

FULL_DISK_SECONDS is the duration, 6 by default. The promise is a minute at 50 requests a second, whose figures are
logged by `FULL_DISK_SECONDS=60 pytest tests/live/test_full_disk.py --log-cli-level=INFO`.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests

from analytics.spool.counters import read_losses
from tests.journeys.rows import Rows, read_rows
from tests.live.service import LiveService
from tests.migrated import place_database
from tests.services import START_SECONDS
from tests.small_disk import SmallDisk, small_disk
from tests.waiting import wait_until

logger = logging.getLogger("tests.live")

FULL_SECONDS = float(os.environ.get("FULL_DISK_SECONDS", "6"))
_RATE = 50.0
_CLIENTS = 8
_DISK_BYTES = 400 << 20


@dataclass
class SteadyLoad:
    """Sends `_RATE` requests a second from a few clients, every other one a stream. `statuses` counts the answers by
    status, 0 for a failed connection."""

    service: LiveService
    statuses: Counter[int] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, number: int) -> None:
        with requests.Session() as session:
            session.headers["Authorization"] = f"Bearer {self.service.api_key}"
            while not self.stop.wait(_CLIENTS / _RATE):
                try:
                    answer = self._ask(session, stream=number % 2 == 0)
                except requests.RequestException:
                    self.statuses[0] += 1
                    continue
                self.statuses[answer.status_code] += 1
                if answer.status_code == 200:
                    self.ids.append(answer.headers["x-request-id"])

    def _ask(self, session: requests.Session, *, stream: bool) -> requests.Response:
        return session.post(
            f"{self.service.base_url}/api/gateway/v1/chat/completions",
            json={"model": "sandbox/echo", "messages": [{"role": "user", "content": "x" * 1000}], "stream": stream},
            headers={"x-svc-session-id": f"disk-{len(self.ids) % 7}"},
            timeout=START_SECONDS,
        )


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "var", _DISK_BYTES) as found:
        yield found


def settled(service: LiveService, load: SteadyLoad, spool: Path) -> Rows | None:
    rows = read_rows(service, service.project_id)
    if rows is None or not rows.consistent:
        return None
    return rows if len(rows.outcomes) + read_losses(spool).lost >= len(load.ids) else None


def test_disk__full_under_load_and_freed__all_answered_stored_or_counted_and_a_clean_end(disk: SmallDisk) -> None:
    # The reserve, the memory and the count are small, so that the test uses up all of them.
    seconds, spool = FULL_SECONDS, disk.path / "spool"
    place_database(disk.path)
    service = LiveService(
        disk.path, {"SPOOL_RESERVE_BYTES": "131072", "SPOOL_QUEUE_BYTES": "150000", "DRAIN_SECONDS": "5"}
    )
    load = SteadyLoad(service)
    with ThreadPoolExecutor(_CLIENTS) as clients:
        for number in range(_CLIENTS):
            clients.submit(load.run, number)
        try:
            wait_until(lambda: len(load.ids) > 100, seconds=START_SECONDS)
            disk.fill()
            shipper = service.kill("shipper")
            load.stop.wait(seconds / 2)
            disk.fill()  # Other processes may have freed space meanwhile.
            refused = management_write(service)
            load.stop.wait(seconds / 2)
            at_the_end = read_losses(spool)
            disk.free()
            freed = time.monotonic()
            wait_until(lambda: read_losses(spool).queued == 0, what="the records that waited in memory")
            wait_until(lambda: service.pid("shipper") not in (None, shipper), what="the pid file of the next shipper")
        finally:
            load.stop.set()
    rows = wait_until(lambda: settled(service, load, spool), seconds=2 * START_SECONDS, what="rows and count to agree")
    recovered = time.monotonic() - freed
    losses, sent = read_losses(spool), load.statuses.total()
    logger.info(
        "disk.was_full seconds=%.0f sent=%d statuses=%s lost=%d waited=%d rows=%d recovered_after=%.1f",
        seconds, sent, dict(load.statuses), losses.lost, at_the_end.queued, rows.total, recovered,
    )  # fmt: skip
    assert load.statuses == {200: sent}
    assert losses.lost > 0
    assert len(set(load.ids) - set(rows.outcomes)) == losses.lost
    assert rows.total + losses.lost == sent
    assert (refused.status_code, "Retry-After" in refused.headers) == (503, True)
    assert management_write(service).status_code == 201
    assert len(list(spool.glob("*.seg"))) <= 8
    # Redis itself comes and goes as other processes free space.
    away = Counter(re.findall(r"^(\S+) +\| .* (\S+ redis\.\w+)", service.log, re.MULTILINE))
    assert all(count <= 6 for count in away.values()), away

    disk.fill()
    service.kill("shipper")
    assert service.stop() == 0
    # Celery's own log lines about a refusing broker are left out.
    assert "Traceback" not in re.sub(r"^celery .*$", "", service.log, flags=re.MULTILINE)


def management_write(service: LiveService) -> requests.Response:
    return requests.post(
        f"{service.base_url}/api/llm/keys",
        json={"name": "full disk", "scopes": ["gateway"]},
        headers={"Authorization": f"Bearer {service.api_key}", "X-Project-Id": service.project_id},
        timeout=START_SECONDS,
    )
