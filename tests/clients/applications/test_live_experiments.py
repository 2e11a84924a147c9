from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import openai
import pytest
from prompt_gateway_client import EvaluationItem, PromptGateway

from tests.clients.applications.drivers import MODULE
from tests.clients.applications.programs import RUNS, Done, ended, start
from tests.fakes.scripted import Script, ScriptedServer, answer, status
from tests.fakes.upstream import Connection, Received
from tests.gateway.experiments.test_scoring import CRITERIA, judging
from tests.gateway.service import reserved_port
from tests.live.prompts import Project
from tests.live.service import LiveService
from tests.migrated import place_database
from tests.waiting import wait_until

ITEMS = 40
EQUAL, WORSE, AWAY = 2, 3, 4
EVALUATORS = ("--evaluator", "kind:must-pass", "--evaluator", "warm")


@dataclass
class Pipeline:
    project: Project
    script: Script
    prompts: list[str] = field(default_factory=list)

    def prompt(self) -> str:
        name = f"support {len(self.prompts)}"
        self.prompts.append(name)
        version = {"system_prompt": "Be kind.", "model": "openai/gpt-4o", "temperature": 1, "max_tokens": 20}
        self.project.prompt(
            name,
            version,
            {**version, "system_prompt": "Be kind, please."},
            {**version, "temperature": 0},
            {**version, "model": "deepseek/deepseek-chat"},
        )
        return name

    def run(self, program: str, prompt: str, version: int, *options: str, at: Path) -> Done:
        """The verdict must be the one on standard output."""
        given = ("--dataset", "regression", "--config", prompt, "--version", str(version), "--margin", "0.2", *options)
        files = ("--junit", "junit.xml", "--markdown", "comment.md")
        project = self.project
        url, key = project.service.base_url, project.api_key
        done = ended(start(RUNS[program], *given, *files, url=url, key=key, project=project.project_id, at=at), key)
        assert f"**{done.found['verdict'] or 'not run'}**" in (at / "comment.md").read_text(), done.told
        assert "<testsuites>" in (at / "junit.xml").read_text()
        return done

    def asked(self) -> int:
        return sum(bool(request.body) for request in self.script.received)

    def experiment(self, done: Done) -> dict[str, Any]:
        return self.project.call("GET", f"../experiments/{done.found['experiment_id']}")


async def _reply(request: Received, connection: Connection) -> None:
    await (answer(judging(json.loads(request.body))) if request.body else status(404))(request, connection)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    var_dir = tmp_path_factory.mktemp("pipelines") / "var"
    place_database(var_dir)
    service = LiveService(var_dir, {"WEB_WORKERS": "1", "ALLOW_PRIVATE_UPSTREAMS": "1"}, prepared=False)
    try:
        yield service
        assert service.stop() == 0
        assert "Traceback" not in service.log
    finally:
        if service.process.poll() is None:
            service.process.send_signal(signal.SIGKILL)
            service.process.wait()


@pytest.fixture(scope="module")
def pipeline(live: LiveService, compiled: None) -> Iterator[Pipeline]:
    project = Project(live, live.project_id, live.api_key)
    with ExitStack() as stack:
        upstream = stack.enter_context(ScriptedServer())
        script = upstream.play("pipelines", _reply)
        # Nobody listens at the port of the provider that is away.
        unheard = stack.enter_context(reserved_port())
        away = f"http://127.0.0.1:{unheard.getsockname()[1]}/v1"
        for provider, url in (("openai", upstream.base_url("pipelines")), ("deepseek", away)):
            integration = {"provider": provider, "api_key": "sk-scripted", "base_url": url, "enabled": True}
            project.call("POST", "../integrations", integration)
        for model in ("gpt-4o", "gpt-4.1"):
            price = {"input_cost_per_1m": "2.50", "output_cost_per_1m": "10.00"}
            project.call("PUT", f"../pricing/openai/{model}", price)
        dataset = project.call("POST", "../datasets", {"name": "regression"})
        messages = [[{"role": "user", "content": f"Question {place}"}] for place in range(ITEMS)]
        items = [{"messages": asked, "tags": ["de"]} for asked in messages]
        project.call("POST", f"../datasets/{dataset['id']}/items", {"items": items})
        judge = {"name": "kind", "kind": "judge", "definition": {"criteria": CRITERIA, "model": "openai/gpt-4.1"}}
        rule = {"name": "warm", "kind": "contains", "definition": {"value": "warm"}}
        for evaluator in (judge, rule):
            project.call("POST", "../evaluators", evaluator)
        yield Pipeline(project, script)


def test_run__equal_versions__pass_and_further_runs_of_any_program_cost_nothing(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    prompt, before = pipeline.prompt(), pipeline.asked()

    first = pipeline.run("python", prompt, EQUAL, *EVALUATORS, at=tmp_path)

    assert (first.code, first.found["verdict"], first.found["error"]) == (0, "passed", None), first.told
    # Answers by both versions, and a grade of each.
    assert (asked := pipeline.asked() - before) == 4 * ITEMS
    assert pipeline.experiment(first)["spent_usd"] > 0
    for program in RUNS:
        again = pipeline.run(program, prompt, EQUAL, *EVALUATORS, at=tmp_path)

        assert (again.code, again.found["verdict"], again.found["cost_usd"]) == (0, "passed", 0), again.told
        assert again.found["experiment_id"] != first.found["experiment_id"]
        assert pipeline.experiment(again)["spent_usd"] == 0
    assert pipeline.asked() - before == asked


@pytest.mark.parametrize("program", list(RUNS))
def test_run__worse_version__exits_with_1_and_names_the_items(pipeline: Pipeline, program: str, tmp_path: Path) -> None:
    done = pipeline.run(program, pipeline.prompt(), WORSE, *EVALUATORS, at=tmp_path)

    assert (done.code, done.found["verdict"]) == (1, "worse"), done.told
    (target,) = done.found["report"]["targets"]
    means = {one["title"]: (one["baseline_mean"], one["target_mean"]) for one in target["evaluators"]}
    assert means == {"kind@1": (1.0, 0.0), "warm@1": (1.0, 0.0)}
    assert "kind@1: item " in (tmp_path / "junit.xml").read_text()
    comment = (tmp_path / "comment.md").read_text()
    assert "Worst items: 1 (-2.000), 2 (-2.000)" in comment
    assert "Worse at the tag de by kind\\@1: -1.000 in " in comment


@pytest.mark.parametrize("program", list(RUNS))
def test_run__few_items__exit_with_2(pipeline: Pipeline, program: str, tmp_path: Path) -> None:
    done = pipeline.run(program, pipeline.prompt(), EQUAL, *EVALUATORS, "--items", "4", at=tmp_path)

    assert (done.code, done.found["verdict"]) == (2, "undecided"), done.told
    assert done.found["report"]["items_judged"] == 4


@pytest.mark.parametrize("program", list(RUNS))
def test_run__budget_that_is_too_small__exits_with_3_and_is_kept(
    pipeline: Pipeline, program: str, tmp_path: Path
) -> None:
    before = pipeline.asked()

    done = pipeline.run(program, pipeline.prompt(), EQUAL, "--evaluator", "warm", "--max-cost", "0.005", at=tmp_path)

    assert (done.code, done.found["verdict"], done.found["error"]["code"]) == (3, None, "budget"), done.told
    assert 0 < pipeline.asked() - before < 2 * ITEMS
    assert 0 < done.found["cost_usd"] <= 0.005


@pytest.mark.night
def test_run__provider_away__exits_with_3(pipeline: Pipeline, tmp_path: Path) -> None:
    done = pipeline.run("python", pipeline.prompt(), AWAY, "--evaluator", "warm", "--items", "4", at=tmp_path)

    assert (done.code, done.found["verdict"], done.found["error"]["code"]) == (3, None, "provider"), done.told


def _evaluated(pipeline: Pipeline, client: str, name: str, tone: str, **options: Any) -> dict[str, Any]:
    """Evaluates an application that asks the gateway and answers in this tone; it fails at Question 7."""
    project = pipeline.project
    base_url, key = project.service.base_url, project.api_key
    given = {"dataset": "regression", "name": name, "evaluators": ["warm"], "margin": 0.2, **options}
    if client == "typescript":
        address = {"baseUrl": base_url, "apiKey": key, "projectId": project.project_id, "tone": tone}
        program = ["node", str(Path(__file__).with_name("evaluation.mjs")), MODULE.with_name("evaluation.js").as_uri()]
        done = subprocess.run([*program, json.dumps({**address, **given})], capture_output=True, text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found
    gateway = openai.OpenAI(base_url=f"{base_url}/api/gateway/v1", api_key=key)

    def application(item: EvaluationItem) -> dict[str, Any]:
        asked: Any = item.messages
        if asked[0]["content"] == "Question 7":
            raise LookupError("no tool for it")
        answered = gateway.chat.completions.create(model="openai/gpt-4o", messages=asked, extra_headers=item.headers)
        return {"content": f"{answered.choices[0].message.content} {tone}", "model": answered.model}

    return PromptGateway(base_url, key, project.project_id).evaluate(application=application, **given).as_json()


@pytest.mark.parametrize("client", ["python", "typescript"])
def test_evaluate__an_application__gets_the_verdict_report_and_exit_code_of_the_command(
    pipeline: Pipeline, client: str
) -> None:
    first = _evaluated(pipeline, client, f"{client} 1", "warm regards")
    asked = pipeline.asked()
    worse = _evaluated(pipeline, client, f"{client} 2", "", against=f"{client} 1")
    unknown = _evaluated(pipeline, client, f"{client} 3", "", against="nobody")

    assert (first["verdict"], first["exit_code"], first["error"]) == (None, 0, None)
    assert (worse["error"], worse["verdict"], worse["exit_code"]) == (None, "worse", 1)
    (target,) = worse["report"]["targets"]
    assert [one["title"] for one in target["evaluators"]] == ["warm@1"]
    assert (unknown["exit_code"], unknown["error"]["code"]) == (3, "no_answers")
    assert asked < pipeline.asked() <= asked + ITEMS
    items = pipeline.project.call("GET", f"../experiments/{first['experiment_id']}/items?limit=1000")["results"]
    errors = {item["preview"]: item["answers"][0]["error"] for item in items if item["answers"][0]["error"]}
    assert list(errors) == ["Question 7"]
    assert "no tool for it" in errors["Question 7"]["message"]
    position = next(item["position"] for item in items if item["preview"] == "Question 8")
    session = f"evaluation-{first['experiment_id']}-{position}-1"
    listed = f"../sessions?name_pattern={session}"
    found = partial(pipeline.project.call, "GET", listed)
    (row,) = wait_until(lambda: found()["results"] or None, what="the session of an answer")
    assert row["request_count"] == 1
