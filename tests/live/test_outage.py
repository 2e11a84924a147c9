"""The analytics store is away for a while under steady load, and the shipper is killed meanwhile: only analytics is
affected.

OUTAGE_SECONDS is the duration, 9 by day. The promise is two minutes, as at night, whose figures are logged by
`OUTAGE_SECONDS=120 pytest tests/live/test_outage.py --log-cli-level=INFO`.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import requests
from pytest_django import Settings

from analytics.clickhouse import client
from analytics.reconciliation.services import reconcile
from tests.analytics.request_counts import Counts, count_requests
from tests.live.conftest import StartService
from tests.live.service import LiveService
from tests.night import examples
from tests.waiting import wait_until

logger = logging.getLogger("tests.live")

OUTAGE_SECONDS = float(os.environ.get("OUTAGE_SECONDS") or examples(9, 120))

_SESSIONS = 7
_PAUSE_SECONDS = 0.05
_RECOVERED_WITHIN_SECONDS = 90.0


@dataclass
class Load:
    service: LiveService
    statuses: Counter[int] = field(default_factory=Counter)
    slowest: float = 0.0
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        with requests.Session() as session:
            session.headers["Authorization"] = f"Bearer {self.service.api_key}"
            while not self.stop.wait(_PAUSE_SECONDS):
                began = time.monotonic()
                self.statuses[self._send(session)] += 1
                self.slowest = max(self.slowest, time.monotonic() - began)

    def _send(self, session: requests.Session) -> int:
        number = self.statuses.total()
        answer = session.post(
            f"{self.service.base_url}/api/gateway/v1/chat/completions",
            json={"model": "sandbox/echo", "messages": [{"role": "user", "content": f"Number {number}"}]},
            headers={"x-svc-session-id": f"outage-{number % _SESSIONS}", "x-svc-user-id": f"user-{number % 3}"},
            timeout=30,
        )
        return answer.status_code


@contextmanager
def steady_load(service: LiveService) -> Iterator[Load]:
    load = Load(service)
    thread = threading.Thread(target=load.run)
    thread.start()
    try:
        yield load
    finally:
        load.stop.set()
        thread.join()


@contextmanager
def store_away(service: LiveService) -> Iterator[None]:
    """Stops the engine with SIGSTOP: it neither answers nor exits, so it is not restarted."""
    pid = wait_until(lambda: service.pid("engine"))
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@dataclass
class Watch:
    service: LiveService
    analytics: Counter[str] = field(default_factory=Counter)
    others: Counter[int] = field(default_factory=Counter)
    slowest_other: float = 0.0
    stop: threading.Event = field(default_factory=threading.Event)

    def ask_analytics(self) -> None:
        while not self.stop.wait(_PAUSE_SECONDS):
            answer = self.service.manage("sessions", timeout=60)
            self.analytics[f"{answer.status_code} {answer.json().get('error', {}).get('message', '')}"] += 1

    def ask_others(self) -> None:
        while not self.stop.wait(_PAUSE_SECONDS):
            for path in ("keys", "prompts/configs"):
                began = time.monotonic()
                self.others[self.service.manage(path, timeout=60).status_code] += 1
                self.slowest_other = max(self.slowest_other, time.monotonic() - began)


@contextmanager
def watched(service: LiveService) -> Iterator[Watch]:
    watch = Watch(service)
    threads = [threading.Thread(target=ask) for ask in (watch.ask_analytics, watch.ask_others)]
    for thread in threads:
        thread.start()
    try:
        yield watch
    finally:
        watch.stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.django_db
def test_store__away_under_load_and_shipper_killed_twice__nothing_lost_or_doubled(
    start_service: StartService, settings: Settings
) -> None:
    service = start_service({"CLICKHOUSE_QUERY_SECONDS": "2", "WEB_WORKERS": "2"})
    with steady_load(service) as load:
        wait_until(lambda: listed(service) > 0, what="the first session")
        with store_away(service), watched(service) as watch:
            for _ in range(2):
                # The shipper is killed in the middle of an attempt.
                load.stop.wait(OUTAGE_SECONDS / 3)
                service.wait_for_successor("shipper", service.kill("shipper"))
            load.stop.wait(OUTAGE_SECONDS / 3)
        wait_until(lambda: listed(service) == _SESSIONS, seconds=_RECOVERED_WITHIN_SECONDS, what="the sessions again")
    sent = load.statuses.total()

    assert load.statuses == {200: sent}
    assert set(watch.others) == {200}
    assert set(watch.analytics) == {"503 The analytics store does not answer."}
    settings.CLICKHOUSE_URL = (service.var_dir / "run" / "clickhouse.url").read_text(encoding="utf-8").strip()
    client.close()
    project = UUID(service.project_id)
    began = time.monotonic()

    def all_counted() -> Counts | None:
        found = count_requests(project)
        return found if found.requests >= sent and found.consistent else None

    counts = wait_until(all_counted, seconds=_RECOVERED_WITHIN_SECONDS, what="all records in all figures")
    logger.info(
        "store.was_away seconds=%.0f requests=%d slowest=%.2f analytics=%s others=%s slowest_other=%.2f after=%.1f %s",
        OUTAGE_SECONDS, sent, load.slowest, dict(watch.analytics), dict(watch.others), watch.slowest_other,
        time.monotonic() - began, counts,
    )  # fmt: skip
    assert counts.requests == sent
    tomorrow = datetime.now(UTC) + timedelta(days=1, hours=2)
    assert reconcile([project], now=tomorrow, dry_run=True).differences == []
    client.close()


def test_session__first_request__is_listed(live_service: LiveService) -> None:
    session = f"listed-{uuid.uuid4().hex}"
    live_service.openai(default_headers={"x-svc-session-id": session}).chat.completions.create(
        model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}]
    )

    wait_until(lambda: first_listing(live_service, session), what="the session")


def listed(service: LiveService) -> int:
    answer = service.manage("sessions", timeout=60)
    return int(answer.json()["count"]) if answer.status_code == 200 else 0


def first_listing(service: LiveService, session: str) -> dict[str, Any] | None:
    answer = service.manage("sessions", name_pattern=session)
    found = answer.json()["results"] if answer.status_code == 200 else []
    return found[0] if found else None
