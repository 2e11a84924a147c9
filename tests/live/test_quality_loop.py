"""The quality loop on the whole product: requests of production become a data set, an experiment over it compares two
versions, and its verdict opens the gate of a rollout or keeps it shut."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.scripted import ScriptedServer
from tests.live.prompts import JSON
from tests.live.quality_loop import AS_GOOD, DATASET, JUDGE, MARGIN, REQUESTS, RULE, WORSE, Loop, make_loop
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.services import START_SECONDS
from tests.waiting import wait_until

_LOOK = 20


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture(scope="module")
def loop(live_service: LiveService, upstream: ScriptedServer) -> Loop:
    return make_loop(live_service, upstream)


def _means(experiment: JSON) -> dict[str, tuple[float, float, int]]:
    (target,) = experiment["report"]["targets"]
    return {one["title"]: (one["baseline_mean"], one["target_mean"], one["pairs"]) for one in target["evaluators"]}


def test_version_as_good__experiment_passes__opens_the_gate_of_its_rollout(loop: Loop) -> None:
    version = loop.another_as_good()
    rollout = loop.gated(version)
    refused = loop.team.send("POST", f"rollouts/{rollout.id}/start", {})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "gate_not_passed")

    found = loop.experiment(version)

    assert (found["state"], found["verdict"], found["failure"]) == ("completed", "passed", None)
    assert _means(found) == {f"{RULE}@1": (1.0, 1.0, REQUESTS), f"{JUDGE}@1": (1.0, 1.0, REQUESTS)}

    rollout.move("start")
    gate = rollout.transition("start")["figures"]["gate"]
    assert (gate["state"], gate["experiment_id"], gate["dataset_version"]) == ("passed", found["id"], 1)
    loop.wait_until_served(f"{version} target")
    rollout.move("rollback")


def test_worse_version__experiment_says_so__its_rollout_does_not_begin(loop: Loop) -> None:
    rollout = loop.gated(WORSE)

    found = loop.experiment(WORSE)

    assert (found["state"], found["verdict"], found["stopped_early"]) == ("completed", "worse", True)
    assert _means(found) == {f"{RULE}@1": (1.0, 0.0, _LOOK), f"{JUDGE}@1": (1.0, 0.0, _LOOK)}
    refused = loop.team.send("POST", f"rollouts/{rollout.id}/start", {})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (409, "gate_not_passed")
    assert "found version 3 worse than version 1" in error["message"]
    assert error["details"]["experiment_id"] == [found["id"]]
    assert rollout.shown()["status"] == "pending"
    loop.wait_until_served("1 -")
    rollout.move("rollback")


def test_requests_of_an_experiment__are_in_the_log_by_their_sources(loop: Loop) -> None:
    # An experiment that stopped early may have asked the judge for a score that it did not wait for.
    before = len(loop.judge.received)
    found = loop.experiment(AS_GOOD)

    items = loop.team.call("GET", f"../experiments/{found['id']}/items?limit={REQUESTS}")["results"]
    answers = [one for item in items for one in item["answers"]]
    judged = {one for given in answers for score in given["scores"] for one in score["request_ids"]}
    assert (len(answers), len(judged)) == (2 * REQUESTS, 2 * REQUESTS)

    def logged(source: str) -> set[str]:
        listed = loop.team.call("GET", f"../requests?source={source}&limit=200")["results"]
        return {row["request_id"] for row in listed}

    wait_until(lambda: {one["request_id"] for one in answers} <= logged("experiment"), what="the answers in the log")
    wait_until(lambda: judged <= logged("judge"), what="the judge's requests in the log")
    asked = [request.body for request in loop.judge.received[before:]]
    assert len(asked) == len(set(asked)), "an answer was judged twice"


def _run_experiment(loop: Loop, version: int, junit: Path) -> tuple[int, JSON]:
    service = loop.team.service
    of_service = {
        "PROMPT_GATEWAY_URL": service.base_url,
        "PROMPT_GATEWAY_API_KEY": loop.team.api_key,
        "PROMPT_GATEWAY_PROJECT_ID": loop.team.project_id,
    }
    what = ["--dataset", DATASET, "--config", loop.prompt.name, "--version", str(version), "--against", "active"]
    how = ["--evaluator", f"{RULE}:must-pass", "--evaluator", f"{JUDGE}@1", "--margin", str(MARGIN)]
    done = subprocess.run(
        [sys.executable, "manage.py", "run_experiment", *what, *how, "--junit", str(junit)],
        cwd=ROOT,
        env={**minimal_environment(service.var_dir), **of_service},
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
    )
    assert done.stdout, done.stderr
    printed: JSON = json.loads(done.stdout)
    return done.returncode, printed


@pytest.mark.parametrize(("version", "verdict", "code"), [(AS_GOOD, "passed", 0), (WORSE, "worse", 1)])
def test_command__each_version__ends_with_the_code_of_its_verdict(
    loop: Loop, version: int, verdict: str, code: int, tmp_path: Path
) -> None:
    returned, printed = _run_experiment(loop, version, tmp_path / "junit.xml")

    assert (returned, printed["verdict"], printed["exit_code"]) == (code, verdict, code)
    assert loop.team.call("GET", f"../experiments/{printed['experiment_id']}")["verdict"] == verdict
    assert ("<failure" in (tmp_path / "junit.xml").read_text(encoding="utf-8")) == bool(code)
