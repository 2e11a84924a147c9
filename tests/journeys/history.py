"""One random history of accidents under traffic, and the invariant that has to hold at its end.

`python -m tests.journeys.history --seed 7 --seconds 600` (or `make chaos ARGS="..."`) replays the history of a seed,
which fixes the accidents, their processes, durations and order. How the processes react differs from run to run.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import requests
from clickhouse_driver import Client

from analytics.spool.counters import read_losses
from tests.clock import Clock
from tests.journeys.rows import Rows, read_rows
from tests.live.service import ROLES, LiveService
from tests.migrated import place_database
from tests.services import START_SECONDS
from tests.small_disk import SmallDisk, small_disk
from tests.waiting import wait_until

logger = logging.getLogger("tests.history")

# A clock is off by about a second as often as by about an hour.
MAX_OFFSET_EXPONENT = 3.6
_CLIENTS = 6
_DISK_BYTES = 1 << 30
_ENVIRONMENT = {
    # Doubtful spend is settled within the test instead of within ten minutes.
    "LIMITS_LEASE_SECONDS": "3",
    "LIMITS_SETTLE_SECONDS": "20",
    "SPOOL_RESERVE_BYTES": "262144",
    "SPOOL_QUEUE_BYTES": "262144",
    "DRAIN_SECONDS": "5",
}


@dataclass(frozen=True)
class Accident:
    """One accident. `kind` is kill, stop (SIGTERM), hang (SIGSTOP, SIGCONT), full or jump. It lasts `seconds`, and
    `calm` seconds follow. A jump sets the host's clock `offset` seconds off the true time until the next jump."""

    kind: str
    role: str
    seconds: float
    calm: float
    offset: float


@dataclass(frozen=True)
class Host:
    disk: SmallDisk
    clock: Clock


def accidents(seed: int, seconds: float) -> Iterator[Accident]:
    """Yields the accidents of a seed; a longer history begins with the shorter one."""
    chance = random.Random(seed)
    left = seconds
    while left > 0:
        kind = chance.choice(("kill", "kill", "stop", "hang", "full", "jump"))
        role = {
            "hang": chance.choice(("engine", "redis", "web-1", "shipper")),
            "full": "disk",
            "jump": "clock",
        }.get(kind, chance.choice(ROLES))
        offset = chance.choice((-1, 1)) * 10 ** chance.uniform(0, MAX_OFFSET_EXPONENT)
        drawn = Accident(kind, role, chance.uniform(1, 4), chance.uniform(0.5, 3), offset)
        left -= (drawn.seconds if kind in ("hang", "full") else 0) + drawn.calm
        yield drawn


@dataclass
class Crowd:
    """Clients that request whole answers and streams, and leave some streams in the middle.

    `answered` holds the ids of whole answers, `sent` counts attempts, `ended` counts their outcomes.
    """

    service: LiveService
    seed: int
    answered: list[str] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, number: int) -> None:
        chance = random.Random(self.seed * 1000 + number)
        with requests.Session() as session:
            session.headers["Authorization"] = f"Bearer {self.service.api_key}"
            while not self.stop.wait(chance.uniform(0.02, 0.15)):
                how = chance.choice(("whole", "stream", "stream", "leave"))
                try:
                    self.ended[self._ask(session, how, number)] += 1
                except requests.RequestException:
                    self.ended["broken"] += 1

    def _ask(self, session: requests.Session, how: str, number: int) -> str:
        answer = session.post(
            f"{self.service.base_url}/api/gateway/v1/chat/completions",
            json={
                "model": "sandbox/echo",
                "messages": [{"role": "user", "content": "word " * 60}],
                "stream": how != "whole",
            },
            headers={"x-svc-session-id": f"history-{number}"},
            timeout=START_SECONDS,
            stream=True,
        )
        with answer:
            if answer.status_code != 200:
                return str(answer.status_code)
            if how == "leave":
                next(answer.iter_content(64), b"")
                return "left"
            text = answer.text
            if how == "stream" and (not text.endswith("data: [DONE]\n\n") or '"error"' in text):
                return "error in the stream"
            self.answered.append(answer.headers["x-request-id"])
            return "answered"


@contextmanager
def crowd(service: LiveService, seed: int) -> Iterator[Crowd]:
    found = Crowd(service, seed)
    threads = [threading.Thread(target=found.run, args=(number,), daemon=True) for number in range(_CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        found.stop.set()
        for thread in threads:
            thread.join(2 * START_SECONDS)


def happen(accident: Accident, service: LiveService, host: Host, pause: threading.Event) -> None:
    if accident.kind == "jump":
        host.clock.set(accident.offset)
    elif accident.kind == "full":
        host.disk.fill()
        pause.wait(accident.seconds)
        host.disk.free()
    else:
        _strike(accident, service, pause)
    pause.wait(accident.calm)


def _strike(accident: Accident, service: LiveService, pause: threading.Event) -> None:
    """A role without a process is restarting and is left alone."""
    pid = service.pid(accident.role)
    if pid is None:
        return
    try:
        if accident.kind == "hang":
            os.kill(pid, signal.SIGSTOP)
            pause.wait(accident.seconds)
        os.kill(pid, {"kill": signal.SIGKILL, "stop": signal.SIGTERM}.get(accident.kind, signal.SIGCONT))
    except ProcessLookupError:
        return


@dataclass(frozen=True)
class Ledger:
    answered: frozenset[str]
    rows: Rows
    lost: int
    spent: Decimal
    counted: Decimal
    dearest: Decimal
    certain: bool

    def faults(self) -> list[str]:
        missing = self.answered - self.rows.outcomes.keys()
        found = []
        if len(missing) > self.lost:
            found.append(f"{len(missing)} answers have no row, {self.lost} counted as lost")
        if not self.rows.consistent:
            found.append(f"{self.rows.total} rows, {len(self.rows.outcomes)} ids, rollups {self.rows.rollups}")
        if not self.certain or not self.spent <= self.counted <= self.spent + self.lost * self.dearest:
            found.append(f"spent {self.spent} in the log, counted {self.counted} (certain: {self.certain})")
        return found


def read_ledger(service: LiveService, crowd: Crowd, spool: Path) -> Ledger | None:
    rows = read_rows(service, service.project_id)
    usage = service.manage("usage", timeout=START_SECONDS)
    if rows is None or usage.status_code != 200:
        return None
    month = usage.json()["month"]
    with Client.from_url((service.var_dir / "run" / "clickhouse.url").read_text().strip()) as client:
        ((spent, dearest),) = client.execute(
            "SELECT sum(cost_usd), max(cost_usd) FROM llm.requests WHERE project_id = %(project)s",
            {"project": service.project_id},
        )
    return Ledger(
        answered=frozenset(crowd.answered),
        rows=rows,
        lost=read_losses(spool).lost,
        spent=Decimal(spent),
        counted=Decimal(str(month["spent_usd"])),
        dearest=Decimal(dearest),
        certain=month["is_certain"],
    )


def play(seed: int, seconds: float, disk: SmallDisk) -> Ledger:
    """Returns the ledger once it agrees. Raises AssertionError with the seed if it never does."""
    host = Host(disk, Clock(disk.path.with_name(f"{disk.path.name}.clock")))
    place_database(disk.path)
    service = LiveService(disk.path, {**_ENVIRONMENT, **host.clock.environment})
    try:
        _limit(service)
        with crowd(service, seed) as people:
            wait_until(lambda: len(people.answered) > 20, seconds=START_SECONDS, what="the first answers")
            for accident in accidents(seed, seconds):
                logger.info("accident %s", accident)
                happen(accident, service, host, people.stop)
            before = len(people.answered)
            wait_until(lambda: len(people.answered) > before + 50, seconds=START_SECONDS, what="answers after it all")
        ledger = _agreed(service, people, disk.path / "spool", seed)
        logger.info(
            "history.held seed=%d ended=%s rows=%d lost=%d spent=%s counted=%s",
            seed, dict(people.ended), ledger.rows.total, ledger.lost, ledger.spent, ledger.counted,
        )  # fmt: skip
        assert service.stop() == 0
        return ledger
    finally:
        if service.process.poll() is None:
            service.kill_supervisor()


def _agreed(service: LiveService, people: Crowd, spool: Path, seed: int) -> Ledger:
    seen: list[Ledger] = []

    def agreed() -> Ledger | None:
        ledger = read_ledger(service, people, spool)
        if ledger is None:
            return None
        seen[:] = [ledger]
        return None if ledger.faults() else ledger

    try:
        return wait_until(agreed, seconds=2 * START_SECONDS)
    except AssertionError:
        faults = seen[0].faults() if seen else ["a store never answered"]
        raise AssertionError(f"seed {seed}: {'; '.join(faults)}; {dict(people.ended)}") from None


def _limit(service: LiveService) -> None:
    """The budget is never reached; it makes Redis count the spend from the first request on."""
    answer = requests.put(
        f"{service.base_url}/api/llm/settings",
        json={"monthly_budget_usd": 1000},
        headers={"Authorization": f"Bearer {service.api_key}", "X-Project-Id": service.project_id},
        timeout=START_SECONDS,
    )
    assert answer.status_code == 200, answer.text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--list", action="store_true", help="print the history and end")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
    logger.info("history seed=%d seconds=%.0f", given.seed, given.seconds)
    if given.list:
        for accident in accidents(given.seed, given.seconds):
            logger.info("accident %s", accident)
        return
    with (
        tempfile.TemporaryDirectory(prefix="history-") as folder,
        small_disk(Path(folder) / "var", _DISK_BYTES) as disk,
    ):
        began = time.monotonic()
        play(given.seed, given.seconds, disk)
        logger.info("history.ended seconds=%.0f", time.monotonic() - began)


if __name__ == "__main__":
    main()
