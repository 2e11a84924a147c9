from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.counts import bounds
from benchmarks.counts.callgrind import Instructions
from benchmarks.counts.kernel import Trace, most_frequent
from benchmarks.targets.ours import Ours
from config.supervisor import run_files
from tests.live.service import ROOT, minimal_environment
from tests.night import NIGHT

_FILE = """\
[slack]
other = { share = 0.1, least = 0.5 }

# A comment stays.
[request]
reads = { bound = 3, why = "One of each side." }
writes = { bound = 40, least = 5, why = "Three, and what the machine adds." }
instructions = { bound = 600_000, why = "Where valgrind is." }

[chunk]
writes = { bound = 9, share = 0.5, why = "One to the client." }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "bounds.toml"
    file.write_text(_FILE, encoding="utf-8")
    return file


@pytest.mark.live
def test_counts__requests_chunks_and_records__none_is_above_its_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The environment lacks the addresses of the suite's services, so that the benchmark starts its own.
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.counts", *([] if NIGHT else ["--without-instructions"])],
        cwd=ROOT, env=minimal_environment(tmp_path / "unused"), capture_output=True, text=True, check=False,
    )  # fmt: skip

    # The output says what could not be counted on this machine, which a passing test would hide.
    with capsys.disabled():
        sys.stdout.write(f"\n{done.stdout}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("instructions | NOT COUNTED" in done.stdout) == (not NIGHT or shutil.which("valgrind") is None)


def test_broken__above_the_bound__says_count_bound_reason_and_how_to_look_closer(file: Path) -> None:
    counted = {"request": {"reads": 3.5, "writes": 40.0}}

    (sentence,) = bounds.load(file).broken(counted)

    assert sentence.startswith("request.reads: 3.50 was counted, the bound is 3 (One of each side.)")
    assert "strace" in sentence


def test_broken__count_without_bound__is_named(file: Path) -> None:
    (sentence,) = bounds.load(file).broken({"chunk": {"reads": 1.0}})

    assert sentence == "chunk.reads: 1.00 was counted, and bounds.toml has no bound for it."


def test_uncounted__bound_without_count__is_named(file: Path) -> None:
    counted = {"request": {"reads": 1.0, "writes": 1.0}}

    assert bounds.load(file).uncounted(counted) == [("request", "instructions"), ("chunk", "writes")]


def test_write__counts__bounds_are_these_and_their_slack_and_the_rest_stays(file: Path) -> None:
    bounds.write({"request": {"reads": 2.0, "writes": 3.0}, "chunk": {"writes": 4.0}}, file)

    text = file.read_text(encoding="utf-8")
    assert 'reads = { bound = 2.5, why = "One of each side." }' in text
    assert 'writes = { bound = 8, least = 5, why = "Three, and what the machine adds." }' in text
    assert 'instructions = { bound = 600_000, why = "Where valgrind is." }' in text
    assert 'writes = { bound = 6, share = 0.5, why = "One to the client." }' in text
    assert "# A comment stays." in text


@pytest.mark.parametrize(("counted", "bound"), [(2.0, 2.5), (198.3, 219), (627_012.8, 690_000), (0.0, 0.5), (-30, 0)])
def test_slack__of_a_count__is_a_share_or_the_least_and_short(counted: float, bound: float) -> None:
    raised = bounds.Slack(share=0.1, least=0.5).bound(counted)

    assert raised == pytest.approx(bound, rel=0.01, abs=30)
    assert raised >= counted


@pytest.fixture
def vgdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Instructions]:
    def counting(script: str) -> Instructions:
        program = tmp_path / "vgdb"
        program.write_text(f"#!/bin/sh\ncd {tmp_path}\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
        return Instructions(7, tmp_path)

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return counting


def test_instructions__process_is_not_reached__error_names_the_cause(vgdb: Callable[[str], Instructions]) -> None:
    counter = vgdb("echo 'vgdb error: no FIFO found matching pid 7' >&2; exit 1")

    with pytest.raises(RuntimeError, match=r"process 7 is not counted: vgdb instrumentation on: .* no FIFO found"):
        counter.switch("on")
    with pytest.raises(RuntimeError, match=r"vgdb dump: .* no FIFO found"):
        counter.take()


def test_instructions__dump_without_a_new_file__is_an_error_and_no_0(vgdb: Callable[[str], Instructions]) -> None:
    counter = vgdb('test "$3" = dump && echo "totals: 922" > callgrind.1')

    assert counter.take() == 922
    with pytest.raises(RuntimeError, match="no dump of process 7"):
        counter.take()


class _Late(Ours):
    def roles(self) -> dict[int, str]:
        found = super().roles()
        run_files.write(self.workspace / "var" / "run" / "shipper.pid", str(os.getpid()))
        return found


def test_process_of__file_comes_late__is_waited_for(tmp_path: Path) -> None:
    service = _Late(tmp_path)
    (service.workspace / "var" / "run").mkdir(parents=True)

    assert service.process_of("shipper").pid == os.getpid()


def test_process_of__no_file__error_names_the_role(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match="no process of the service runs as shipper"):
        Ours(tmp_path).process_of("shipper", seconds=0)


def test_trace__calls_of_several_threads__are_counted_once_between_the_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "strace"
    file.write_text(
        "7  100.5 read(5, \"\", 10) = 0\n"
        "7  101.5 write(5, \"a\", 1 <unfinished ...>\n"
        "8  101.6 read(6, \"b\", 1) = 1\n"
        "7  101.7 <... write resumed>) = 1\n"
        "7  102.5 read(5, \"\", 10) = 0\n"
    )  # fmt: skip
    times = iter((101.0, 102.0))
    monkeypatch.setattr("benchmarks.counts.kernel.time.time", lambda: next(times))
    trace = Trace(file)
    trace.mark()
    trace.mark()

    (between,) = trace.between_marks()

    assert between == {"write": 1, "read": 1}
    assert most_frequent([between], 2) == "write 0.50, read 0.50"
