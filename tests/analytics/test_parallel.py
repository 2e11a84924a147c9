from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from analytics.queries.parallel import both
from tests.waiting import TIMEOUT_SECONDS


def test_both__two_questions__run_at_the_same_time() -> None:
    meeting = threading.Barrier(2)

    def ask(answer: str) -> str:
        meeting.wait(TIMEOUT_SECONDS)
        return answer

    assert both(lambda: ask("first"), lambda: ask("second")) == ("first", "second")


@pytest.mark.parametrize("failing", ["first", "second"])
def test_both__one_fails__raised_when_both_have_ended(failing: str) -> None:
    ended = []

    def ask(name: str) -> None:
        ended.append(name)
        if name == failing:
            raise LookupError(name)

    with pytest.raises(LookupError, match=failing):
        both(lambda: ask("first"), lambda: ask("second"))
    assert sorted(ended) == ["first", "second"]


def test_both__second_function_asks_two_questions__more_callers_than_threads_get_answers() -> None:
    def ask(_: int) -> tuple[str, tuple[str, str]]:
        return both(lambda: "first", lambda: both(lambda: "second", lambda: "third"))

    with ThreadPoolExecutor(32) as callers:
        answers = list(callers.map(ask, range(200), timeout=TIMEOUT_SECONDS))

    assert set(answers) == {("first", ("second", "third"))}


def test_both__in_a_forked_process__has_threads_of_its_own() -> None:
    both(lambda: None, lambda: None)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if both(lambda: 1, lambda: 2) == (1, 2) else 1
        finally:
            os._exit(code)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
