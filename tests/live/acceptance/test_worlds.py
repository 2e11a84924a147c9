"""Sends every world a burst of requests, and evaluates its rollout with the clock some minutes ahead.

`python -m tests.live.acceptance` does the same with the default settings and minutes of traffic.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping

import aiohttp
import pytest

from tests.live.acceptance.clients import Clients, new_session, outcomes
from tests.live.acceptance.course import FIRST_REQUESTS, Course
from tests.live.acceptance.worlds import WORLDS, World
from tests.live.prompts import new_projects
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.night import cases
from tests.services import START_SECONDS
from tests.waiting import TIMEOUT_SECONDS, wait_until

# By day one world of each kind of evidence against a target, and two harmless ones.
BY_DAY = {
    "error-500",
    "422, half of the clients",
    "hangs, clients leave after 4 s",
    "guardrail refuses the answers",
    "error-500 behind a cold cache",
    "another model, slower",
    "another model, dearer",
    "every answer breaks its schema",
    "another model answers for its own",
    "harmless",
    "harmless beside a warm cache",
}
PLAYED = tuple(cases(WORLDS, by_day=[world for world in WORLDS if world.name in BY_DAY]))
# Fewer than 20 of 80 requests at 49 % come five times in a million; enough of the cached ones remain for a comparison,
# and of those of which half are answered for the minimum of a stage. The scheduled evaluation may have judged the
# answered ones before those that hang are counted, and no further traffic comes beside them.
REQUESTS, REQUESTS_CACHED, REQUESTS_HALF_ANSWERED = 80, 160, 160
# A stage lasts a minute, so that the scheduled evaluation promotes nothing meanwhile; worlds whose clients leave by
# themselves need fewer requests.
STAGES = {
    harmless: [
        {"weight": 49, "min_duration_minutes": 1, "min_requests": FIRST_REQUESTS // (1 + harmless)},
        {"weight": 100, "min_duration_minutes": 1, "min_requests": 0},
    ]
    for harmless in (False, True)
}
# These worlds need traffic before the start: the baseline's usual latency and cost are what they are measured against.
USUAL = {
    "hangs in mid-stream, clients leave",
    "slow stream, clients leave",
    "another model, slower",
    "another model, dearer",
}
USUAL_REQUESTS = 110
AT_ONCE, LEAVING_AT_ONCE = 3, 16


@pytest.fixture(scope="module")
def decided(live_service: LiveService) -> Mapping[str, Course]:
    projects = new_projects(live_service, [world.name for world in PLAYED])
    courses = [Course(*pair) for pair in zip(PLAYED, projects, strict=True)]
    asyncio.run(_run(courses, live_service))
    return {course.world.name: course for course in courses}


async def _run(courses: list[Course], service: LiveService) -> None:
    async with new_session() as session:
        await asyncio.to_thread(_prepare, courses)
        usual = [course for course in courses if course.world.name in USUAL]
        await asyncio.gather(*(course.clients.ask_often(session, USUAL_REQUESTS, AT_ONCE) for course in usual))
        await asyncio.to_thread(_start, courses, usual)
        try:
            await asyncio.gather(*(_ask(course.clients, session) for course in courses))
            await asyncio.to_thread(_evaluate, courses, service)
        finally:
            await asyncio.gather(*(course.clients.leave() for course in courses))


async def _ask(clients: Clients, session: aiohttp.ClientSession) -> None:
    client_timeout = clients.world.client_timeout
    if str(clients.world.target.get("model")).startswith("sandbox/hang") and (
        client_timeout is None or client_timeout > 60
    ):
        half_answered = clients.world.target["model"] == "sandbox/hang-half"
        for _ in range(REQUESTS_HALF_ANSWERED if half_answered else REQUESTS):
            clients.begin(session)
    else:
        at_once = LEAVING_AT_ONCE if client_timeout is not None and client_timeout < 60 else AT_ONCE
        longer = clients.world.settings.get("cache_ttl_seconds") or clients.world.sessions
        count = REQUESTS_CACHED if longer else REQUESTS
        await clients.ask_often(session, count, at_once)


def _prepare(courses: list[Course]) -> None:
    for course in courses:
        course.prepare()


def _start(courses: list[Course], usual: list[Course]) -> None:
    for course in usual:
        wait_until(lambda at=course: at.prompt.usage(0)["request_count"] >= USUAL_REQUESTS, what="the requests before")  # type: ignore[misc]
    for course in courses:
        course.start(STAGES[course.world.harmless])


def _evaluate(courses: list[Course], service: LiveService) -> None:
    evaluations = [
        (course.project.project_id, course.rollout.id, len(course.target) + len(course.baseline)) for course in courses
    ]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.live.acceptance.later"],
        cwd=ROOT,
        env=minimal_environment(service.var_dir),
        input=json.dumps(evaluations),
        capture_output=True,
        text=True,
        # The command waits for the records of each rollout in turn.
        timeout=START_SECONDS + 10 * TIMEOUT_SECONDS,
    )
    assert ran.returncode == 0, ran.stderr
    for course in courses:
        course.look()


def test_worlds_by_day__names__are_of_worlds() -> None:
    assert {world.name for world in WORLDS} >= BY_DAY


def _of(worlds: tuple[World, ...], *, harmless: bool) -> list[str]:
    return [world.name for world in worlds if world.harmless == harmless]


@pytest.mark.parametrize("world", _of(PLAYED, harmless=False))
def test_worse_target__its_first_requests__rolled_back_or_held_with_the_reason(
    decided: Mapping[str, Course], world: str
) -> None:
    course = decided[world]
    assert len(course.target) >= FIRST_REQUESTS
    assert course.finding.decided in ("rolled back", "held"), f"{outcomes(course.target)}: {course.finding}"
    assert course.names_the_fault, course.finding.reason


@pytest.mark.parametrize("world", _of(PLAYED, harmless=True))
def test_harmless_target__its_first_requests__promoted(decided: Mapping[str, Course], world: str) -> None:
    course = decided[world]
    assert course.finding.decided == "promoted", f"{outcomes(course.target)}: {course.finding}"
