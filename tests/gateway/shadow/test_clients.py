"""A client whose requests a shadow takes notices nothing: web workers have no part in it."""

from __future__ import annotations

from tests.fakes import scripted as play
from tests.gateway.conftest import Scripted
from tests.gateway.managed import make_prompt
from tests.gateway.wire import body

NAMED = {"x-svc-prompt-config": "support"}
JUDGE = "openai/gpt-4.1"


def test_request__of_a_baseline_with_a_shadow__is_one_call_with_its_own_prompt(scripted: Scripted) -> None:
    project, script = scripted(play.answer("Tomorrow."))
    prompt = make_prompt(project, "Be short.", "Be warm.")
    price = {"provider": "openai", "model": "gpt-4.1", "input": "2.5", "output": "10"}
    project.service.seeder.call("set_price", project_id=project.project_id, **price)
    definition = {"question": "Which is warmer?", "model": JUDGE}
    evaluator = {"name": "warmer", "kind": "pairwise", "definition": definition}
    made = project.manage("POST", "evaluators", evaluator)
    shadow = {"evaluator_id": made.json()["id"], "rate": 1, "budget_usd": 100}
    asked = {"config_id": prompt.config_id, "target_version_id": prompt.version_ids[1], "gate": "shadow"}
    rollout = project.manage("POST", "prompts/rollouts", {**asked, "shadow": shadow})
    assert rollout.status_code == 201, rollout.content

    answers = [project.post(body(), headers=NAMED) for _ in range(5)]

    assert [one.json()["choices"][0]["message"]["content"] for one in answers] == ["Tomorrow."] * 5
    assert [b"Be short." in one.body for one in script.received] == [True] * 5
    record = project.record(answers[0])
    assert (record.prompt_version, record.rollout_id, record.variant, record.attributes) == (1, "", "", {})
