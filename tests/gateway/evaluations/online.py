"""A scene whose answers online evaluations score: from the request log to the score, without a wait."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.utils import timezone

from analytics.models import EvaluationTask, OnlineEvaluation, Score
from analytics.online_evaluations.follow import follow_log
from gateway.evaluations.online import judge_due
from integrations.models import ModelPrice
from tests.fakes.scripted import Step, answer
from tests.gateway.evaluations.conftest import Scene

PATH = "/api/llm/online-evaluations"
JUDGE = "openai/gpt-4o"
POLITE = {
    "name": "polite",
    "meaning": "It is polite.",
    "labels": [{"name": "yes", "meaning": "It is.", "score": 1}, {"name": "no", "meaning": "It is not.", "score": 0}],
}
BUDGET = 100


def graded(label: str = "yes", **extra: Any) -> Step:
    return answer(json.dumps({"polite": {"reason": "So it is.", "label": label}}), **extra)


def priced(**rates: str) -> None:
    """Gives the judge a price, without which its budget could not be kept."""
    given = {"input_cost_per_1m": "2.5", "output_cost_per_1m": "10", **rates}
    ModelPrice.objects.create(provider="openai", model="gpt-4o", source="manual", **given)


def judge(scene: Scene, **fields: Any) -> str:
    """Has a judge score all answers; returns the evaluation's id."""
    priced()
    evaluator_id = scene.evaluator("judge", criteria=[POLITE], model=JUDGE)
    return create(scene, evaluator_id, **{"monthly_budget_usd": BUDGET, **fields})


def rule(scene: Scene, **fields: Any) -> str:
    """Has a rule score all answers; returns the evaluation's id."""
    return create(scene, scene.evaluator("contains", value="seven"), **fields)


def create(scene: Scene, evaluator_id: str, **fields: Any) -> str:
    made = scene.api.post(PATH, {"evaluator_id": evaluator_id, "rate": 1, **fields}, format="json")
    assert made.status_code == 201, made.content
    return str(made.json()["id"])


def detail(scene: Scene, evaluation_id: str) -> dict[str, Any]:
    answered = scene.api.get(f"{PATH}/{evaluation_id}")
    assert answered.status_code == 200, answered.content
    found: dict[str, Any] = answered.json()
    return found


def change(scene: Scene, evaluation_id: str, **fields: Any) -> dict[str, Any]:
    answered = scene.api.patch(f"{PATH}/{evaluation_id}", fields, format="json")
    assert answered.status_code == 200, answered.content
    found: dict[str, Any] = answered.json()
    return found


def take_samples() -> None:
    """Takes the samples of all that is stored, as if its minute was over. The minutes before are looked at once more,
    and must have nothing due again."""
    OnlineEvaluation.objects.update(sampled_until=timezone.now() - timedelta(minutes=5))
    while follow_log(timezone.now() + timedelta(minutes=1)):
        pass


def judge_all() -> None:
    """Judges until nothing is due that does not wait."""
    while judge_due():
        pass


def without_waits() -> None:
    """Lets tasks that were put back be taken again, as time would."""
    EvaluationTask.objects.update(not_before=None)


def scores(name: str) -> list[tuple[str, float, str]]:
    """Returns the scores of that name as request, value and evaluator type, by request."""
    rows = Score.objects.filter(score_name=name).order_by("request_id")
    return [(row.request_id, row.score_value, row.evaluator_type) for row in rows]


def ends(evaluation_id: str) -> list[tuple[str, str]]:
    """Returns state and reason of the tasks, in the order of the queue."""
    rows = EvaluationTask.objects.filter(evaluation=UUID(evaluation_id)).order_by("due_at", "position", "pk")
    return [(row.state, row.reason) for row in rows]


def spent(evaluation_id: str) -> Decimal:
    """Returns the costs of all tasks together."""
    rows = EvaluationTask.objects.filter(evaluation=UUID(evaluation_id)).values_list("cost_usd", flat=True)
    return sum(rows, Decimal(0))
