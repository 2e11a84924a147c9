"""A rollout whose shadow asks for its target: a log of the baseline's requests, and a provider that answers and judges
by what it is sent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from analytics.request_log.record import SpoolEntry
from gateway.models import Experiment, ExperimentAnswer, Shadow
from gateway.shadow.follow import follow_log
from integrations.models import ModelPrice
from prompts.models import PromptConfig
from tests.factories.analytics import make_entry, store
from tests.factories.evaluators import make_evaluator
from tests.factories.prompts import make_config, make_version
from tests.fakes.scripted import Step, completion
from tests.gateway.experiments.conftest import MODEL, Scene, by_request, kind_of, run_all
from tests.gateway.experiments.conftest import scene as scene
from tests.gateway.experiments.conftest import upstream as upstream
from tests.gateway.experiments.conftest import without_waits as without_waits

PATH = "/api/llm/prompts/rollouts"
JUDGE = "openai/gpt-4.1"
SHORT, WARM = "Be short.", "Be warm."


def preferring(word: str, **extra: Any) -> Step:
    """Returns a step that answers by the system prompt, and as a judge prefers the answer with the word. `extra` are
    fields of all completions."""

    def reply(body: dict[str, Any]) -> str:
        if kind_of(body) != "comparison":
            return "Tomorrow, warm regards." if body["messages"][0]["content"] == WARM else "Tomorrow."
        asked = json.loads(body["messages"][-1]["content"])
        has = [word in str(asked[place].get("content")) for place in ("first", "second")]
        better = "tie" if has[0] == has[1] else "first" if has[0] else "second"
        return json.dumps({"reason": f"It has {word}.", "better": better})

    return by_request(reply, **extra)


BETTER, WORSE, EQUAL = preferring("warm"), preferring("Tomorrow."), preferring("Tomorrow")


@dataclass
class ShadowScene:
    """A rollout from version 1, which is short, to version 2, which is warm."""

    scene: Scene
    config: PromptConfig

    def create(self, *, status: int = 201, **fields: Any) -> dict[str, Any]:
        """Makes a rollout with a shadow, of whose fields some may be others."""
        shadow = {"evaluator_id": self.evaluator_id(), "rate": 1, "budget_usd": 100, **fields.pop("shadow", {})}
        body = {"config_id": str(self.config.pk), "target_version_id": str(self.target_id), "gate": "shadow"}
        answered = self.scene.api.post(PATH, {**body, "shadow": shadow, **fields}, format="json")
        assert answered.status_code == status, answered.content
        found: dict[str, Any] = answered.json()
        return found

    def evaluator_id(self, kind: str = "pairwise", **definition: Any) -> str:
        definition = definition or {"question": "Which is warmer?", "model": JUDGE}
        return str(make_evaluator(self.scene.project, kind, **definition).pk)

    @property
    def target_id(self) -> Any:
        return self.config.versions.get(number=2).pk

    def rollout(self, rollout_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.scene.api.get(f"{PATH}/{rollout_id}").json()
        return found

    def gate(self, rollout_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.rollout(rollout_id)["gate"]
        return found

    def move(self, rollout_id: str, move: str, status: int = 200, **body: Any) -> dict[str, Any]:
        answered = self.scene.api.post(f"{PATH}/{rollout_id}/{move}", body, format="json")
        assert answered.status_code == status, answered.content
        found: dict[str, Any] = answered.json()
        return found

    def served(
        self, text: str = "When?", *, fields: dict[str, Any] | None = None, message: Any = None, **values: Any
    ) -> str:
        """Stores a request that the baseline answered; returns its id."""
        entry = self._entry(text, fields=fields, message=message, **values)
        store(self.scene.spool, entry)
        return str(entry.record.request_id)

    def _entry(
        self, text: str, *, fields: dict[str, Any] | None = None, message: Any = None, **values: Any
    ) -> SpoolEntry:
        body = {
            "model": MODEL,
            "prompt_config": self.config.name,
            "messages": [{"role": "user", "content": text}],
            **(fields or {}),
        }
        given = completion("Tomorrow.")
        if message is not None:
            given["choices"][0]["message"] = message
        return make_entry(
            json.dumps(body).encode(),
            json.dumps(given).encode(),
            **{
                "project_id": str(self.scene.project_id),
                "prompt_config_id": str(self.config.pk),
                "prompt_version": 1,
                **values,
            },
        )

    def served_many(self, count: int) -> None:
        store(self.scene.spool, *(self._entry(f"When, for the time {number}?") for number in range(count)))

    def run(self) -> None:
        """Follows the log and answers until nothing is left, as if the minute was over."""
        while True:
            follow()
            run_all()
            if not self.waiting():
                return

    def waiting(self) -> bool:
        return ExperimentAnswer.objects.filter(state__in=("pending", "running", "answered", "scoring")).exists()

    def sent_answers(self) -> list[dict[str, Any]]:
        return self.scene.of_kind("answer")


def follow() -> None:
    """Follows the log, as if its minute was over."""
    while follow_log(timezone.now() + timedelta(minutes=1)):
        pass


def look_again() -> None:
    """Has the last minutes be looked at once more, as the next ones would be."""
    Shadow.objects.update(followed_until=timezone.now() - timedelta(minutes=5))


def only_experiment() -> Experiment:
    return Experiment.objects.get()


@pytest.fixture
def shadow(scene: Scene) -> ShadowScene:
    for model in ("gpt-4o", "gpt-4.1"):
        rates = {"input_cost_per_1m": "2.5", "output_cost_per_1m": "10"}
        ModelPrice.objects.create(provider="openai", model=model, source="manual", **rates)
    config = make_config(scene.project, "greeter")
    make_version(config, SHORT)
    make_version(config, WARM)
    config.refresh_from_db()
    return ShadowScene(scene, config)
