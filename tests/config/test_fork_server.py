from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import psutil

from tests.live.service import ROOT
from tests.waiting import TIMEOUT_SECONDS, wait_until


def start(story: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.config.forked", story]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def play(story: str) -> tuple[int, str, str]:
    with start(story) as process:
        output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        return process.returncode, output, errors


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_forks__of_one_parent__share_its_imports_but_no_random_numbers() -> None:
    code, output, _ = play("two")

    assert code == 0
    assert output.count("arguments=1,2 ") == 2
    assert output.count("threads=1\n") == 2
    assert output.count("leads_session=True imported_before=True\nexit_code=0\n") == 2
    assert len(set(re.findall(r"id=(\S+)", output))) == 2


def test_programs__of_every_kind__run_with_their_descriptors_and_give_their_exit_code() -> None:
    code, output, _ = play("kinds")

    executed, written, failed, absent, no_file = re.findall(r"(?s)(.*?)exit_code=(-?\d+)\n", output)
    assert code == 0
    assert executed == ("executed well\n", "3")
    assert written == ("", "0")
    assert failed[0].startswith("Traceback")
    assert failed[0].endswith("OSError: this program's own failure\n")
    assert "has no attribute 'absent'" in absent[0]
    assert "FileNotFoundError" in no_file[0]
    assert [failed[1], absent[1], no_file[1]] == ["1", "1", "1"]
    assert output.endswith("kept\n")


def test_child__killed__exits_with_its_signal_and_the_next_one_starts() -> None:
    assert play("killed")[:2] == (0, "-9\n-9\n")


def test_import__failed__is_logged_and_ends_nothing() -> None:
    code, output, errors = play("two")

    assert code == 0
    assert "module.not_imported module=tests.config.no_such_module error=ModuleNotFoundError" in errors
    assert "imported_before=True\nexit_code=0" in output


def test_program__on_the_streams_of_its_service__writes_to_them_and_gives_its_exit_code() -> None:
    code, output, errors = play("own_streams")

    assert code == 0
    assert re.fullmatch(r"arguments=1 id=\S+ threads=1\nexit_code=0\nexit_code=3\n", output)
    assert "leads_session=True" in errors


def test_workers__one_does_not_start_with_new_secrets__those_before_it_are_replaced_back() -> None:
    code, output, errors = play("one_does_not_start")

    assert output == "web-2 ended with exit code 1: new former new\n3: former former former\n", errors
    assert code == 0


def test_supervisor__ended__gives_its_exit_code_and_leaves_no_child() -> None:
    code, output, _ = play("leaves_a_child")

    assert code == 7
    wait_until(lambda: has_ended(int(output)), what="the end of the child")


def test_supervisor__killed__gives_the_exit_code_of_a_shell() -> None:
    assert play("dies")[0] == 128 + signal.SIGKILL


def test_child__ended_at_once__ends_alone_and_has_yielded() -> None:
    assert play("ended_at_once")[:2] == (0, "{-15} yielded={True} stops=0\n")


def test_service__signalled_as_a_whole__stops_once_and_in_the_supervisors_order() -> None:
    with start("signalled") as process:
        assert process.stdout is not None
        child, supervisor = map(int, process.stdout.readline().split())

        # systemd signals each process of a service.
        os.kill(supervisor, signal.SIGTERM)
        process.send_signal(signal.SIGTERM)

        output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, output) == (0, "forwarded running=True\n-15 more=0\n")
    assert has_ended(child)


def test_fork_server__killed__takes_all_processes_along() -> None:
    with start("signalled") as process:
        assert process.stdout is not None
        started = [int(pid) for pid in process.stdout.readline().split()]
        below = [one.pid for one in psutil.Process(process.pid).children(recursive=True)]

        os.kill(process.pid, signal.SIGKILL)

        process.communicate(timeout=TIMEOUT_SECONDS)
    assert sorted(below) == sorted(started)
    wait_until(lambda: all(has_ended(pid) for pid in below), what="the end of supervisor and child")
