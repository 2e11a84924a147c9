"""Automatic rollouts of many kinds of targets at once, on a service of its own with the default settings.

    python -m tests.live.acceptance                  # all worlds: some 15 minutes
    python -m tests.live.acceptance --world 422 --world hangs --rate 2 --minutes 20
    python -m tests.live.acceptance --postgresql     # beside a database server; SQLite without it

`serve` runs as `make serve` starts it: web workers, shipper, Celery with its beat, Redis, the engine and the sandbox.
Each world (`worlds.py`) is a project whose clients send requests at random times, all through the gateway and in the
official wire format; its rollout is automatic and has short stages. The exit code is 1 when a worse target was promoted
or was neither rolled back nor held within minutes of its first 20 requests, and when a harmless target was not
promoted.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.live.acceptance.clients import new_session, outcomes
from tests.live.acceptance.course import FIRST_REQUESTS, Course
from tests.live.acceptance.worlds import WORLDS, World
from tests.live.prompts import JSON, new_projects
from tests.live.service import LiveService
from tests.services import START_SECONDS, start_postgresql
from tests.waiting import wait_until

STAGES: tuple[JSON, ...] = tuple(
    {"weight": weight, "min_duration_minutes": 1, "min_requests": 0 if weight == 100 else FIRST_REQUESTS}
    for weight in (25, 40, 100)
)
_LOOK_SECONDS = 5.0
_AT_ONCE = 4


async def run(courses: Sequence[Course], given: argparse.Namespace) -> None:
    for course in courses:
        await asyncio.to_thread(course.prepare)
    async with new_session() as session:
        await asyncio.gather(*(course.clients.ask_often(session, given.before, _AT_ONCE) for course in courses))
        await asyncio.to_thread(_wait_until_recorded, courses)
        sending = {}
        for course in courses:
            await asyncio.to_thread(course.start, STAGES)
            sending[course.world.name] = asyncio.create_task(course.clients.send_steadily(session, given.rate))
        try:
            await _watch(courses, sending, given)
        finally:
            for task in sending.values():
                task.cancel()
            await asyncio.gather(*sending.values(), return_exceptions=True)


def _wait_until_recorded(courses: Sequence[Course]) -> None:
    """The usual latency and cost of the baselines' requests are read at the start of a rollout."""
    for course in courses:
        served = sum(one.outcome != "422" for one in course.clients.seen)
        wait_until(
            lambda at=course, count=served: at.prompt.usage(0)["request_count"] >= count,  # type: ignore[misc]
            seconds=START_SECONDS,
            what=f"{served} requests of {course.world.name} in the log",
        )


async def _watch(courses: Sequence[Course], sending: dict[str, asyncio.Task[None]], given: argparse.Namespace) -> None:
    began = time.time()
    while time.time() < began + given.minutes * 60:
        await asyncio.sleep(_LOOK_SECONDS)
        for course in courses:
            await asyncio.to_thread(_look, course, began)
            if course.finding.has_ended:
                sending[course.world.name].cancel()
        if all(_is_settled(course, given) for course in courses):
            return


def _is_settled(course: Course, given: argparse.Namespace) -> bool:
    """A rollout that holds has some time in which it might still be promoted."""
    finding = course.finding
    return finding.has_ended or (finding.decided == "held" and time.time() > finding.at + given.beyond * 60)


def _look(course: Course, began: float) -> None:
    before = course.finding
    course.look()
    after = course.finding
    if (before.decided, before.stage) != (after.decided, after.stage):
        _print(f"{(time.time() - began) / 60:5.1f} min  {course.world.name}: {after.decided}, stage {after.stage}")


def table(courses: Sequence[Course], within: float) -> str:
    lines = [
        "| Target | Its users got | The baseline's | Verdict | after requests of the target"
        f" | and minutes from the {FIRST_REQUESTS}th | |",
        "|---|---|---|---|---|---|---|",
    ]
    for course in courses:
        minutes = course.minutes_until_decided()
        cells = (
            course.world.name,
            outcomes(course.target),
            outcomes(course.baseline),
            f"{course.finding.decided}, stage {course.finding.stage}",
            str(course.requests_until_decided()),
            "-" if minutes is None else f"{minutes:.1f}",
            course.fault(within) or "right",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"- {course.world.name}: {course.finding.reason}" for course in courses)])


@contextmanager
def service(*, postgresql: bool) -> Iterator[tuple[LiveService, dict[str, str]]]:
    with tempfile.TemporaryDirectory(prefix="acc-", dir="/tmp", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # The database server may run as another user.
        environment: dict[str, str] = {}
        database = None
        if postgresql:
            database, environment["DATABASE_URL"] = start_postgresql(folder / "pg")
            environment["SECRET_KEY"] = secrets.token_urlsafe(48)
            environment["ENCRYPTION_KEYS"] = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
        running = LiveService(folder / "var", environment)
        try:
            yield running, environment
        finally:
            running.stop()
            if database is not None:
                database.stop(signal.SIGINT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--world", action="append", default=[], help="only those whose names hold this; may be repeated"
    )
    parser.add_argument("--rate", type=float, default=1.5, help="requests a second of each world")
    parser.add_argument("--minutes", type=float, default=20.0, help="at most so long")
    parser.add_argument("--within", type=float, default=6.0, help="minutes until a verdict is due")
    parser.add_argument("--beyond", type=float, default=4.0, help="minutes that a rollout on hold is watched for")
    parser.add_argument("--before", type=int, default=120, help="requests of the baseline before the start")
    parser.add_argument("--postgresql", action="store_true")
    given = parser.parse_args()
    worlds = [world for world in WORLDS if _is_selected(world, given.world)]
    with service(postgresql=given.postgresql) as (running, environment):
        projects = new_projects(running, [world.name for world in worlds], **environment)
        courses = [Course(*pair) for pair in zip(worlds, projects, strict=True)]
        with suppress(KeyboardInterrupt):
            asyncio.run(run(courses, given))
        _print(table(courses, given.within))
    return 1 if any(course.fault(given.within) for course in courses) else 0


def _is_selected(world: World, parts: Sequence[str]) -> bool:
    return not parts or any(part in world.name for part in parts)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    os.nice(5)
    sys.exit(main())
