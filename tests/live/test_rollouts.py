from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import count
from threading import Event, Thread
from typing import Any

import pytest

from tests.live.prompts import (
    EVALUATION_LAG_SECONDS,
    Answer,
    EachWorker,
    Prompt,
    Rollout,
    Team,
    ask,
    statuses,
)
from tests.live.service import LiveService
from tests.waiting import wait_until

_GOODS = [{"name": "goods", "type": "string", "required": True}]
FIRST: dict[str, Any] = {"system_prompt": "You sell {{goods}}.", "model": "sandbox/mirror", "variables": _GOODS}
SECOND: dict[str, Any] = {**FIRST, "system_prompt": "You know all about {{goods}}."}
FAILING: dict[str, Any] = {**FIRST, "model": "sandbox/half"}

# The script evaluates the stored rows again; the result has to be the stored decision.
_REPLAY = """
import json
from rollouts.models import RolloutTransition
from tests.rollouts.replay import replayed_figures
rows = RolloutTransition.objects.filter(rollout_id="{rollout_id}", actor="auto").order_by("id")
print(json.dumps([replayed_figures(row.rollout, row.figures) == row.figures for row in rows]))
"""


@pytest.fixture(scope="module")
def team(live_service: LiveService) -> Team:
    return Team(live_service, "tea shop")


def test_first_version__active_at_once__is_what_the_model_receives(team: Team) -> None:
    prompt = team.prompt("first", FIRST)

    def served() -> Answer | None:
        (answer,) = prompt.answers(["What have you got?"])
        return answer if answer.served == "1 -" else None

    # A change of prompts reaches workers that hold the project's snapshot.
    answer = wait_until(served, what="version 1")
    assert json.loads(answer.text) == [
        {"role": "system", "content": "You sell tea."},
        {"role": "user", "content": "What have you got?"},
    ]
    shown = prompt.shown()
    assert (shown["active_version_number"], shown["has_active_rollout"]) == (1, False)
    wait_until(lambda: prompt.usage(0)["request_count"] == 1, what="the use of version 1 to be counted")


def test_manual__whole_life__each_worker_follows_and_clients_change_nothing(team: Team) -> None:
    prompt = team.prompt("manual", FIRST, SECOND)
    with EachWorker(prompt) as workers:
        workers.all_serve("1 -")

        rollout = prompt.rollout(stages=[{"weight": 1}, {"weight": 100}])
        assert rollout.move("promote", reason="looks well")["current_weight"] == 100
        workers.all_serve("2 target")
        assert {answer.system_prompt for answer in workers.ask().values()} == {"You know all about tea."}

        assert rollout.move("pause")["status"] == "paused"
        workers.all_serve("prompt config 'manual' was skipped: its rollout is paused")
        assert {answer.system_prompt for answer in workers.ask().values()} == {None}

        assert rollout.move("start")["current_weight"] == 100
        workers.all_serve("2 target")

        assert rollout.move("rollback")["status"] == "rolled_back"
        workers.all_serve("1 -")
        assert prompt.shown()["active_version_number"] == 1

        again = prompt.rollout()
        assert [again.move("promote")["current_weight"] for _ in range(6)] == [5, 10, 25, 50, 75, 100]
        assert again.move("promote")["status"] == "completed"
        workers.all_serve("2 -")

        prompt.add({**FIRST, "system_prompt": "You buy {{goods}}."})
        assert prompt.rollout().move("complete")["status"] == "completed"
        workers.all_serve("3 -")
    assert [row["action"] for row in rollout.shown()["transitions"]] == [
        "create", "start", "promote", "pause", "start", "roll_back",
    ]  # fmt: skip


def test_calls_at_once__of_one_rollout_and_of_two__one_of_them_wins(team: Team) -> None:
    prompt = team.prompt("at once", FIRST, SECOND)
    body = prompt.new_rollout()

    created = team.at_once(("POST", "rollouts", body), ("POST", "rollouts", body))
    assert statuses(created) == [201, 409]
    rollout = Rollout(team, next(one.json()["id"] for one in created if one.status_code == 201))

    start = ("POST", f"rollouts/{rollout.id}/start", None)
    assert statuses(team.at_once(start, start)) == [200, 409]

    for stage in range(1, 6):
        promote = ("POST", f"rollouts/{rollout.id}/promote", {"from_stage": stage})
        assert statuses(team.at_once(promote, promote)) == [200, 409]
        assert rollout.shown()["current_stage"] == stage + 1

    unguarded = ("POST", f"rollouts/{rollout.id}/promote", None)
    answers = statuses(team.at_once(unguarded, unguarded))
    moves = [row for row in rollout.shown()["transitions"] if row["action"] == "promote"]
    # Threads may be further apart than a promotion takes; whatever their answers, each 200 is one stage.
    assert len(moves) == 5 + answers.count(200)
    assert answers[0] == 200


def test_complete_and_rollback__at_once__one_wins_and_the_config_agrees(team: Team) -> None:
    prompt = team.prompt("ends", FIRST, SECOND)
    rollout = prompt.rollout()

    complete, roll_back = (("POST", f"rollouts/{rollout.id}/{move}", None) for move in ("complete", "rollback"))
    assert statuses(team.at_once(complete, roll_back)) == [200, 409]
    assert prompt.shown()["active_version_number"] == (2 if rollout.shown()["status"] == "completed" else 1)


def test_redis__hangs__last_good_version_is_served_and_a_change_arrives_afterwards(team: Team) -> None:
    prompt = team.prompt("no redis", FIRST, SECOND)
    with EachWorker(prompt) as workers:
        workers.all_serve("1 -")
        with _stopped(team.service, "redis"):
            for _ in range(5):
                assert {answer.served for answer in workers.ask().values()} == {"1 -"}
            rollout = prompt.rollout(stages=[{"weight": 100}])
            assert {answer.version for answer in workers.ask().values()} <= {"1", "2"}
        wait_until(
            lambda: {answer.served for answer in workers.ask().values()} == {"2 target"},
            seconds=90,  # Workers read again by themselves every 30 seconds.
            what="the rollout on every worker",
        )
    rollout.move("rollback")


def test_automatic__failing_and_harmless_targets__rolled_back_by_beat_and_completed_by_hand(team: Team) -> None:
    careless, careful = team.prompt("careless", FIRST, FAILING), team.prompt("careful", FIRST, SECOND)
    stages = [{"weight": 40, "min_duration_minutes": 0, "min_requests": 5}]
    failing = careless.rollout(mode="auto", stages=[{"weight": 50}, {"weight": 100}])
    last = {"weight": 100, "min_duration_minutes": 0, "min_requests": 5}
    harmless = careful.rollout(mode="auto", stages=[*stages, last])

    with EachWorker(careless) as workers, _watched(workers) as seen:
        _ask_until_target_served(careful, 5)
        careless.answers(f"question {number}" for number in range(60))
        harmless.wait_until_recorded(target=5, baseline=0)

        _evaluate_next_minute(team, harmless, lambda: harmless.shown()["current_stage"] == 2)
        _ask_until_target_served(careful, 5)
        harmless.wait_until_recorded(target=10, baseline=0)

        wait_until(lambda: failing.shown()["status"] == "rolled_back", seconds=150, what="beat to roll back")
        _evaluate_next_minute(team, harmless, lambda: harmless.shown()["status"] == "completed")

    _assert_rolled_back(careless, failing, seen)
    _assert_completed(careful, harmless)
    for rollout in (failing, harmless):
        replayed = json.loads(team.command("shell", "--verbosity", "0", "-c", _REPLAY.format(rollout_id=rollout.id)))
        assert replayed == [True] * (1 if rollout is failing else 2)


def _assert_rolled_back(prompt: Prompt, rollout: Rollout, seen: list[Answer]) -> None:
    move = rollout.transition("roll_back")
    assert (move["actor"], move["from_status"], move["to_status"]) == ("auto", "running", "rolled_back")
    assert "Errors: " in move["reason"]
    assert "Certain enough to roll back." in move["reason"]
    assert (move["figures"]["status"], move["figures"]["metrics"]["error_rate"]["status"]) == ("failing", "failing")
    found = rollout.metrics()
    assert (found["rollout_status"], found["overall_status"], found["decision"]) == (
        "rolled_back", "failing", "roll_back",
    )  # fmt: skip
    assert found["target"]["error_rate"] > 0.3
    assert found["baseline"]["error_rate"] == 0
    shown = prompt.shown()
    assert (shown["active_version_number"], shown["has_active_rollout"]) == (1, False)
    with EachWorker(prompt) as workers:
        workers.all_serve("1 -")
    moved_at = datetime.fromisoformat(move["created_at"])
    before = {answer.served for answer in seen if answer.sent_at < moved_at}
    assert before >= {"1 baseline", "2 target"}
    assert {answer.served for answer in seen if answer.status >= 500} == {"2 target"}
    for port in {answer.port for answer in seen}:
        after = [answer.served for answer in seen if answer.port == port and answer.sent_at > moved_at]
        # A worker that has learned of the move does not return to the former version.
        assert "1 -" not in after or set(after[after.index("1 -") :]) == {"1 -"}


def _assert_completed(prompt: Prompt, rollout: Rollout) -> None:
    found = rollout.shown()
    moves = [(row["action"], row["from_stage"], row["to_stage"], row["actor"]) for row in found["transitions"][2:]]
    assert moves == [("promote", 1, 2, "auto"), ("promote", 2, 2, "auto")]
    assert all(row["figures"] for row in found["transitions"][2:])
    assert ["nothing" in row["reason"].lower() for row in found["transitions"][2:]] == [True, True]
    assert [stage["status"] for stage in found["stages"]] == ["completed", "completed"]
    assert prompt.shown()["active_version_number"] == 2
    with EachWorker(prompt) as workers:
        workers.all_serve("2 -")


def _ask_until_target_served(prompt: Prompt, times: int) -> None:
    """Sends fewer requests to the target than the twenty from which latency is evaluated: a slow machine proves
    nothing."""
    served, is_known = 0, False
    with prompt.team.client() as client:
        for number in count():
            answer = ask(client, prompt.name, f"question {number}")
            # One connection leads to one worker, which knows of the rollout from some request on.
            assert answer.variant or not is_known
            is_known = is_known or bool(answer.variant)
            served += answer.variant == "target"
            if served == times:
                return


def _evaluate_next_minute(team: Team, rollout: Rollout, moved: Callable[[], bool]) -> None:
    """Evaluates by command, twice at once, when the running minute is closed.

    The scheduled evaluation may have run before, and the second command may start so late that another minute is
    closed, in which the rollout stays.
    """
    closed = (int(time.time()) // 60 + 1) * 60 + EVALUATION_LAG_SECONDS
    wait_until(lambda: time.time() > closed, seconds=90, what="the end of the minute")
    evaluate = partial(team.command, "evaluate_rollouts", "--rollout", rollout.id)
    with ThreadPoolExecutor(2) as pool:
        printed = [found.result() for found in [pool.submit(evaluate), pool.submit(evaluate)]]
    promoted = [", promote. " in text for text in printed]
    assert sum(promoted) <= 1
    assert all(
        done or "Nothing to evaluate" in text or ", stays." in text
        for done, text in zip(promoted, printed, strict=True)
    ), printed
    wait_until(moved, seconds=150, what=f"the rollout to move: {printed}")


@contextmanager
def _watched(workers: EachWorker) -> Iterator[list[Answer]]:
    """Yields every worker's answers during the block. The questions differ each time: the target fails at half of
    them.
    """
    seen: list[Answer] = []
    over = Event()

    def watch() -> None:
        for number in count():
            if over.wait(0.25):
                return
            seen.extend(workers.ask(f"Have you got {number} kinds?").values())

    thread = Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


@contextmanager
def _stopped(service: LiveService, role: str) -> Iterator[None]:
    pid = wait_until(lambda: service.pid(role))
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
