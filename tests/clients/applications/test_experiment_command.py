from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lxml import etree  # type: ignore[import-untyped]  # it has no types

from tests.clients.applications.experiment_server import (
    BROKEN,
    EVALUATOR,
    EXPERIMENT_ID,
    KEY,
    ExperimentServer,
    experiment_server,
    known_id,
)
from tests.clients.applications.programs import PUSHES, RUNS, Done, ended, start
from tests.tables.cases import tabled
from tests.waiting import TIMEOUT_SECONDS

EVALUATORS = ("--evaluator", "tone@2", "--evaluator", "schema:a@b:must-pass:min-rate=0.9")
ASKED = ("--dataset", "regression", "--config", "support", *EVALUATORS)
SCHEMA = etree.XMLSchema(etree.parse(str(Path(__file__).parent / "junit.xsd")))


@dataclass(frozen=True)
class Program:
    command: list[str]
    server: ExperimentServer
    folder: Path

    def begin(self, *options: str, url: str = "") -> subprocess.Popen[str]:
        return start(self.command, *options, url=url or self.server.base_url, key=KEY, at=self.folder)

    def run(self, *options: str, url: str = "") -> Done:
        return ended(self.begin(*options, url=url), KEY)


@pytest.fixture
def service() -> Iterator[ExperimentServer]:
    with experiment_server() as running:
        yield running


@pytest.fixture(params=list(RUNS))
def every(request: pytest.FixtureRequest, compiled: None, service: ExperimentServer, tmp_path: Path) -> Program:
    return Program(RUNS[request.param], service, tmp_path)


@pytest.fixture(params=list(PUSHES))
def svc(request: pytest.FixtureRequest, compiled: None, service: ExperimentServer, tmp_path: Path) -> Program:
    """The clients alone: the command of the service is the one for Python."""
    return Program(RUNS[request.param], service, tmp_path)


@pytest.fixture(params=list(PUSHES))
def pusher(request: pytest.FixtureRequest, compiled: None, service: ExperimentServer, tmp_path: Path) -> Program:
    return Program(PUSHES[request.param], service, tmp_path)


@pytest.mark.parametrize(("verdict", "code"), [("passed", 0), ("worse", 1), ("undecided", 2)])
def test_run__each_verdict__is_an_exit_code_and_one_object(every: Program, verdict: str, code: int) -> None:
    every.server.ends_with(verdict)

    done = every.run(*ASKED, "--version", "5", "--max-cost", "2.00", "--items", "40", "--no-reuse")

    assert (done.code, done.found["verdict"], done.found["exit_code"]) == (code, verdict, code)
    assert done.found["experiment_id"] == EXPERIMENT_ID
    assert done.found["url"] == f"{every.server.base_url}/admin/experiments/{EXPERIMENT_ID}/"
    assert (done.found["cost_usd"], done.found["version"], done.found["against"]) == (0.1234, 5, 3)
    assert done.found["report"] == every.server.end["report"]
    assert done.found["error"] is None
    assert "running: 40 of 800 answers" in done.told
    (body,) = every.server.bodies("POST", "/api/llm/experiments")
    assert body.pop("name").startswith("support 5 against 3 (")
    assert body == {
        "dataset_id": known_id("regression"),
        "candidates": [{"version_id": known_id("v3")}, {"version_id": known_id("v5")}],
        "baseline": "A",
        "evaluators": [
            {"evaluator_id": known_id("e1"), "version": 2},
            {"evaluator_id": known_id("e2"), "must_pass": True, "min_rate": 0.9},
        ],
        "repeats": 1,
        "margin": 0.1,
        "reuse": False,
        "item_limit": 40,
        "max_cost_usd": 2.0,
    }


def test_run__experiment_that_failed__is_not_run(every: Program) -> None:
    every.server.end = {"state": "failed", "failure": "The budget is spent.", "failure_code": "budget"}

    done = every.run(*ASKED, "--version", "5", "--junit", "junit.xml", "--markdown", "comment.md")

    assert (done.code, done.found["verdict"]) == (3, None)
    assert done.found["error"] == {"code": "budget", "message": "The budget is spent."}
    root = junit_of(every)
    assert [case.find("error").get("type") for case in root.iter("testcase")] == ["budget"]
    assert "**not run** (budget): The budget is spent." in (every.folder / "comment.md").read_text()


def test_run__undecided__fails_only_if_it_is_asked_to(svc: Program) -> None:
    svc.server.ends_with("undecided", {**EVALUATOR, "passes": False})
    done = svc.run(*ASKED, "--version", "5", "--fail-on", "worse", "--junit", "junit.xml")

    assert (done.code, done.found["verdict"]) == (0, "undecided")
    assert junit_of(svc).find("testsuite").get("failures") == "0"
    assert junit_of(svc).find("testsuite").get("skipped") == "1"


def test_run__files__have_the_figures(svc: Program) -> None:
    svc.server.ends_with("worse", EVALUATOR, BROKEN)

    done = svc.run(*ASKED, "--version", "5", "--junit", "junit.xml", "--markdown", "comment.md")

    assert done.code == 1
    suite = junit_of(svc).find("testsuite")
    assert dict(suite.attrib) == {
        "id": "0",
        "name": "experiment support 5 against 3",
        "package": "experiments",
        "timestamp": "2026-11-27T10:00:00",
        "hostname": "127.0.0.1",
        "tests": "4",
        "failures": "3",
        "errors": "0",
        "skipped": "0",
        "time": "12.500",
    }
    cases = {case.get("name"): case.find("failure") for case in suite.iter("testcase")}
    assert list(cases) == ["tone@2", "schema <1>@1", "schema <1>@1: item 3", "schema <1>@1: item 17"]
    assert cases["tone@2"] is None
    assert cases["schema <1>@1"].text.splitlines() == [
        "version 5: mean 0.912",
        "version 3: mean 0.905",
        "difference: -0.121 (-0.021 to +0.035)",
        "pairs: 200, of them 12 won, 180 tied, 8 lost",
        "good answers: 0.912, at least 0.900 demanded",
        "items that only version 3 passes: 12",
        "without a score (judge_failed): 0 of version 5, 1 of version 3",
    ]
    assert (svc.folder / "comment.md").read_text().splitlines() == [
        "### Experiment: support 5 against 3",
        "",
        "**worse**: Because \\| so.",
        "",
        "| Evaluator | Version 5 | Version 3 | Difference | Won, tied, lost | Passes |",
        "|---|---:|---:|---:|---:|---|",
        "| tone\\@2 | 0.912 | 0.905 | +0.007 (-0.021 to +0.035) | 12, 180, 8 | yes |",
        "| schema \\<1\\>\\@1 | 0.912 | 0.905 | -0.121 (-0.021 to +0.035) | 12, 180, 8 | **no** |",
        "",
        "Newly failed by schema \\<1\\>\\@1: items 3, 17 and 10 more.",
        "",
        "Worst items: 7 (-0.750).",
        "",
        "Worse at the tag de by tone\\@2: -0.212 in 40 pairs.",
        "",
        f"200 of 400 items, data set regression, version 7, stopped early, $0.1234. [Experiment]({done.found['url']})",
    ]


def test_run__report_that_lacks_a_field__is_not_run_and_ends_with_3(every: Program) -> None:
    every.server.ends_with("passed")
    del every.server.end["report"]["targets"][0]["worst_items"]

    done = every.run(*ASKED, "--version", "5", "--markdown", "comment.md")

    every.server.answered.clear()  # The service gives no such answer.
    assert (done.code, done.found["verdict"], done.found["exit_code"]) == (3, None, 3)
    assert done.found["error"]["code"] == "command_failed"
    assert "worst" in done.told


def test_run__answer_of_another_shape__ends_with_3(svc: Program) -> None:
    svc.server.sets[:] = [None]  # type: ignore[list-item]

    done = svc.run(*ASKED, "--version", "5")

    svc.server.answered.clear()  # The service gives no such answer.
    assert (done.code, done.found["error"]["code"]) == (3, "command_failed")


def test_manage_py__settings_that_cannot_be_read__ends_with_3() -> None:
    environment = {**os.environ, "WEB_WORKERS": "many"}
    python, *command = RUNS["manage"]

    # With an option of Python it is started, and not forked from what has read its settings.
    done = subprocess.run([python, "-B", *command], env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines() == ["Environment variable WEB_WORKERS: expected a whole number"]


def test_run__prompt_file__is_tried_as_a_version(svc: Program) -> None:
    svc.server.ends_with("passed")
    (svc.folder / "support.md").write_text("Be kind.\n")

    done = svc.run(*ASKED, "--prompt-file", "support.md", "--against", "2")

    assert (done.code, done.found["version"], done.found["against"]) == (0, 6, 2)
    assert "support.md is now version 6 of support." in done.told
    path = f"/api/llm/prompts/configs/{known_id('c')}/versions/from-file"
    assert svc.server.bodies("POST", path) == [{"name": "support.md", "text": "Be kind.\n"}]


def test_run__prompt_file_that_is_the_active_version__has_nothing_to_try(svc: Program) -> None:
    (svc.folder / "support.md").write_text("unchanged")

    done = svc.run(*ASKED, "--prompt-file", "support.md", "--junit", "junit.xml", "--markdown", "comment.md")

    assert (done.code, done.found["unchanged"], done.found["experiment_id"]) == (0, True, None)
    assert svc.server.bodies("POST", "/api/llm/experiments") == []
    assert junit_of(svc).find("testsuite").get("tests") == "0"
    assert "**unchanged**" in (svc.folder / "comment.md").read_text()


@tabled
def test_run__unknown_name__is_named_and_nothing_is_made(svc: Program, changed: list[str], named: str) -> None:
    done = svc.run(*ASKED, "--version", "5", *changed)

    assert done.code == 3
    assert done.found["error"] == {"code": "unknown_name", "message": f"The project has no {named}."}
    assert {one.method for one in svc.server.received} == {"GET"}


@tabled
def test_run__wrong_options__are_named_and_exit_with_3(svc: Program, options: list[str], named: str) -> None:
    done = svc.run(*ASKED, *options)

    assert (done.code, done.found) == (3, None)
    assert named in done.told
    assert svc.server.received == []


def test_run__no_evaluator_and_wrong_options_of_manage_py__exit_with_3(every: Program) -> None:
    done = every.run("--dataset", "regression", "--config", "support", "--version", "5")

    assert (done.code, done.found) == (3, None)
    assert "--evaluator" in done.told


def test_run__prompt_file_that_is_not_there__is_named(svc: Program) -> None:
    done = svc.run(*ASKED, "--prompt-file", "nowhere.md")

    assert (done.code, done.found["error"]["code"]) == (3, "unreadable_file")
    assert "nowhere.md" in done.found["error"]["message"]


def test_run__server_away__is_not_run(every: Program) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unheard.getsockname()[1]}"
        done = every.run(*ASKED, "--version", "5", "--timeout", "2", url=url)

    assert (done.code, done.found["verdict"], done.found["experiment_id"]) == (3, None, None)
    assert done.found["error"]["code"] in ("unavailable", "timeout")
    assert "Trying again" in done.told


def test_run__answers_that_are_lost__are_asked_for_again(svc: Program) -> None:
    svc.server.ends_with("passed")
    svc.server.faults = {
        ("GET", "datasets"): ["lost", "busy"],
        ("POST", "experiments"): ["lost"],
        ("GET", f"experiments/{EXPERIMENT_ID}"): ["busy"],
    }

    done = svc.run(*ASKED, "--version", "5")

    assert done.code == 0
    # The experiment whose answer was lost is found by its name, and not made twice.
    assert len(svc.server.bodies("POST", "/api/llm/experiments")) == 1


def test_run__refusal_of_the_service__is_the_error_without_the_key(svc: Program) -> None:
    svc.server.faults = {("POST", "experiments"): ["refused"]}

    done = svc.run(*ASKED, "--version", "5")

    assert done.code == 3
    assert done.found["error"] == {"code": "too_many_experiments", "message": "Too many experiments of [key]."}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run__interrupted__cancels_the_experiment(svc: Program, number: signal.Signals) -> None:
    svc.server.looks = 1_000_000
    child = svc.begin(*ASKED, "--version", "5")
    assert svc.server.asked.wait(TIMEOUT_SECONDS)

    child.send_signal(number)
    done = ended(child, KEY)

    assert (done.code, done.found["error"]["code"]) == (3, "interrupted")
    assert len(svc.server.bodies("POST", f"/api/llm/experiments/{EXPERIMENT_ID}/cancel")) == 1


def test_run__too_slow__cancels_the_experiment(svc: Program) -> None:
    svc.server.looks = 1_000_000

    done = svc.run(*ASKED, "--version", "5", "--timeout", "3")

    assert (done.code, done.found["error"]["code"]) == (3, "timeout")
    assert len(svc.server.bodies("POST", f"/api/llm/experiments/{EXPERIMENT_ID}/cancel")) == 1


def test_push__file__is_streamed_with_progress(pusher: Program) -> None:
    text = '{"messages": [{"role": "user", "content": "' + "x" * 100 + '"}]}\n'
    (pusher.folder / "items.jsonl").write_text(text * 2500)
    pusher.server.faults = {("POST", f"datasets/{known_id('new')}/import"): ["busy"]}

    done = pusher.run("items.jsonl", "--dataset", "new")

    assert done.code == 0
    assert done.found == {
        "dataset_id": known_id("new"),
        "name": "new",
        "version": 1,
        "item_count": 2500,
        "added": 2500,
        "already_there": 0,
    }
    assert "lines are sent" in done.told
    sent = [one for one in pusher.server.received if one.path.partition("?")[0].endswith("/import")]
    assert [one.path.partition("?")[2] for one in sent] == ["only_new=true"] * 2
    assert sent[-1].body == (text * 2500).encode()


def test_push__torn_line__is_named_and_leaves_nothing(pusher: Program) -> None:
    (pusher.folder / "items.jsonl").write_text('{"messages": []}\n{"mess\n')

    done = pusher.run("items.jsonl", "--dataset", "new")

    assert done.code == 3
    assert done.found == {"error": {"code": "invalid_dataset_item", "message": "line 2: Is not JSON."}}
    assert [one["name"] for one in pusher.server.sets] == ["regression"]


def test_push__file_that_is_not_there__is_named(pusher: Program) -> None:
    done = pusher.run("nothing.jsonl", "--dataset", "new")

    assert (done.code, done.found["error"]["code"]) == (3, "unreadable_file")
    assert pusher.server.received == []


def junit_of(program: Program) -> Any:
    document = etree.parse(str(program.folder / "junit.xml"))
    SCHEMA.assertValid(document)
    return document.getroot()
