"""A project whose prompt served clients, with their requests as a data set, a rule and a scripted judge that score
answers, and two more versions: one as good as the first, and a worse one."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.fakes.scripted import Script, ScriptedServer, answer
from tests.fakes.upstream import Connection, Received
from tests.live.playground import Stage, make_stage
from tests.live.prompts import JSON, Prompt, Rollout, Team, ask
from tests.live.service import LiveService
from tests.waiting import wait_until

# Where a target is as good as its baseline on every item, this many items show it by this margin.
REQUESTS, MARGIN = 40, 0.2
FIRST_VERSION, AS_GOOD, WORSE = 1, 2, 3
DATASET, RULE, JUDGE = "production", "says kind", "is kind"

_FIRST: JSON = {
    "system_prompt": "You sell {{goods}}. Be kind.",
    "model": "sandbox/mirror",
    "variables": [{"name": "goods", "type": "string", "required": True}],
}
_AS_GOOD: JSON = {**_FIRST, "system_prompt": "You sell {{goods}}. Be kind, and brief."}
_WORSE: JSON = {**_FIRST, "system_prompt": "You sell {{goods}}. Be brief."}
_KINDNESS: JSON = {
    "name": "kindness",
    "meaning": "The answer is kind.",
    "labels": [
        {"name": "good", "meaning": "It is kind.", "score": 1.0},
        {"name": "bad", "meaning": "It is not.", "score": 0.0},
    ],
}
_EVALUATORS: list[JSON] = [
    {"name": RULE, "kind": "contains", "definition": {"value": "Be kind"}},
    {"name": JUDGE, "kind": "judge", "definition": {"model": "openai/judge", "criteria": [_KINDNESS]}},
]


@dataclass
class Loop:
    stage: Stage
    judge: Script
    prompt: Prompt
    dataset: JSON
    evaluators: list[JSON]

    @property
    def team(self) -> Team:
        return self.stage.team

    def experiment(self, version: int) -> JSON:
        candidates = [{"version_id": self.version_id(number)} for number in (FIRST_VERSION, version)]
        chosen = [{"evaluator_id": evaluator["id"]} for evaluator in self.evaluators]
        body = {"dataset_id": self.dataset["id"], "candidates": candidates, "evaluators": chosen, "margin": MARGIN}
        made = self.team.call("POST", "../experiments", body)
        return wait_until(lambda: self._ended(made["id"]), what="the experiment to end")

    def another_as_good(self) -> int:
        self.prompt.add(_AS_GOOD)
        return len(self.prompt.version_ids)

    def version_id(self, number: int) -> str:
        return self.prompt.version_ids[number - 1]

    def _ended(self, experiment_id: str) -> JSON | None:
        found = self.team.call("GET", f"../experiments/{experiment_id}")
        return found if found["state"] not in ("pending", "running") else None

    def gated(self, version: int) -> Rollout:
        body = self.prompt.new_rollout(
            target_version_id=self.version_id(version),
            stages=[{"weight": 100}],
            mode="manual",
            gate="experiment",
            gate_dataset_id=self.dataset["id"],
        )
        return Rollout(self.team, self.team.call("POST", "rollouts", body)["id"])

    def wait_until_served(self, expected: str) -> None:
        with self.team.client() as client:
            wait_until(lambda: ask(client, self.prompt.name).served == expected, what=f"{expected!r} to be served")


def make_loop(service: LiveService, upstream: ScriptedServer) -> Loop:
    stage = make_stage(Team(service, f"loop {uuid.uuid4().hex[:6]}"), upstream)
    judge = stage.play(judge=_grades)
    prompt = stage.team.prompt("support", _FIRST)
    _serve(prompt)
    for version in (_AS_GOOD, _WORSE):
        prompt.add(version)
    made = stage.team.call("POST", "../datasets", {"name": DATASET})
    asked = {"filter": {"prompt_config_id": prompt.config_id, "prompt_version": FIRST_VERSION}, "limit": REQUESTS}
    taken = stage.team.call("POST", f"../datasets/{made['id']}/items/from-requests", asked)
    assert (taken["added"], taken["dataset"]["version"]) == (REQUESTS, 1)
    evaluators = [stage.team.call("POST", "../evaluators", evaluator) for evaluator in _EVALUATORS]
    return Loop(stage, judge, prompt, taken["dataset"], evaluators)


def _serve(prompt: Prompt) -> None:
    with prompt.team.client() as client, ThreadPoolExecutor(4) as pool:

        def serve(number: int) -> None:
            # Workers learn of a new prompt soon; until then they answer without it.
            question = f"Where is parcel {number}?"
            wait_until(lambda: ask(client, prompt.name, question).served == "1 -", what="version 1 to be served")

        list(pool.map(serve, range(REQUESTS)))
    wait_until(lambda: prompt.usage(0)["request_count"] >= REQUESTS, what="the requests in the log")


async def _grades(request: Received, connection: Connection) -> None:
    """Grades an answer by a word of it: the sandbox's model `mirror` answers with the messages that it was sent."""
    asked = json.loads(json.loads(request.body)["messages"][-1]["content"])
    label = "good" if "kind" in asked["answer"]["content"] else "bad"
    await answer(json.dumps({"kindness": {"reason": f"It is {label}.", "label": label}}))(request, connection)
