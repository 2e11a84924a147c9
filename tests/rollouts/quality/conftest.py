"""A project with a rule and a rollout that it judges, over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from analytics.models import EvaluationTask, OnlineEvaluation
from analytics.queries.variants import BASELINE, TARGET, ArmTotals
from rollouts.comparison import metrics
from rollouts.models import Rollout, RolloutEvaluation
from rollouts.verdicts import evaluate
from rollouts.verdicts.evaluate import EvaluationResult, evaluate_rollout
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import MINUTE
from tests.rollouts.conftest import PATH, Api
from tests.rollouts.quality.tasks import Scores, matched, sampled
from tests.rollouts.replay import replayed_figures
from tests.rollouts.request_log import RequestLog, begun, this_minute

STAGES = [
    {"weight": 10, "min_duration_minutes": 0, "min_requests": 1},
    {"weight": 50, "min_duration_minutes": 0, "min_requests": 1},
    {"weight": 100, "min_duration_minutes": 0, "min_requests": 0},
]
HALF = STAGES[1:]
GOOD, BAD = [1.0] * 10, [0.0] * 10


def entry(evaluation: OnlineEvaluation, **fields: Any) -> dict[str, Any]:
    """Returns what a rollout asks of an evaluator."""
    return {"evaluator_id": str(evaluation.evaluator_id), **fields}


def figures_of(rollout: Rollout) -> dict[str, Any]:
    """Returns the figures of the latest verdict, which its minutes reach again to the last digit."""
    figures: dict[str, Any] = RolloutEvaluation.objects.get(rollout=rollout).verdict
    assert replayed_figures(rollout, figures) == figures
    return figures


@dataclass
class Judged:
    """An automatic rollout whose answers are judged. Its metrics see equal arms."""

    api: Api
    log: RequestLog
    monkeypatch: pytest.MonkeyPatch

    def rollout(self, *entries: dict[str, Any], minutes_ago: int = 120, **fields: Any) -> Rollout:
        """Makes and starts a rollout, as if that was so many minutes ago."""
        given = {"mode": "auto", "stages": STAGES, "quality": list(entries), **fields}
        rollout_id = self.api.created(**given)["id"]
        started = self.api.move(rollout_id, "start")
        assert started.status_code == 200, started.content
        rollout = begun(Rollout.objects.get(pk=UUID(rollout_id)), minutes_ago)
        # The metrics catch up by days, which is not what is looked at here.
        RolloutEvaluation.objects.filter(rollout=rollout).update(through=this_minute() - timedelta(minutes=120))
        return rollout

    def requests(self, rollout: Rollout, ago: int, *, stage: int = 1, count: int = 80) -> None:
        """Adds so many answered requests to a minute, of which the arms have their shares."""
        own = count * rollout.stages.get(number=stage).weight // 100
        self.log.add(rollout, ago, stage=stage, target=(own, 0), baseline=(count - own, 0))

    def passing_metrics(self, rollout: Rollout) -> None:
        for ago in range(60, 20, -1):
            self.requests(rollout, ago, count=400)

    def sampled_until(self, ago: int) -> None:
        OnlineEvaluation.objects.update(sampled_until=this_minute() - timedelta(minutes=ago))

    def look(self, rollout: Rollout, ago: int = 0) -> EvaluationResult:
        """Evaluates the rollout as of so many minutes ago."""
        until = this_minute() - timedelta(minutes=ago)
        self.monkeypatch.setattr(evaluate, "closed_until", lambda _: until)
        RolloutEvaluation.objects.filter(rollout=rollout, through__gte=until).update(through=until - MINUTE)
        found = evaluate_rollout(rollout.pk)
        assert found is not None
        rollout.refresh_from_db()
        return found

    def metrics(self, rollout: Rollout) -> dict[str, Any]:
        response = self.api.client.get(f"{PATH}/{rollout.pk}/metrics")
        assert response.status_code == 200, response.content
        found: dict[str, Any] = response.json()
        return found

    def scores(
        self, rollout: Rollout, evaluation: OnlineEvaluation, minutes: range, target: Scores, baseline: Scores,
        **values: Any,
    ) -> list[EvaluationTask]:  # fmt: skip
        """Makes the same tasks in each of these minutes ago."""
        return [
            one
            for ago in minutes
            for one in sampled(rollout, evaluation, ago, target=target, baseline=baseline, **values)
        ]

    def worse(self, rollout: Rollout, evaluation: OnlineEvaluation) -> None:
        """Adds requests whose answers are bad in the target and good in the baseline."""
        self.requests(rollout, 40)
        self.scores(rollout, evaluation, range(40, 36, -1), BAD, GOOD)


@pytest.fixture
def judged(api: Api, log: RequestLog, monkeypatch: pytest.MonkeyPatch, still_clock: None) -> Judged:
    return Judged(api, log, monkeypatch)


@pytest.fixture
def rule(api: Api) -> OnlineEvaluation:
    return matched(api.project, make_evaluator(api.project, name="says seven"))


@pytest.fixture
def totals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request log counts nothing, and forecasts nothing."""
    monkeypatch.setattr(metrics, "signals_of", lambda _: None)
    monkeypatch.setattr(metrics, "arm_totals", lambda *_: {arm: ArmTotals(arm) for arm in (TARGET, BASELINE)})
    monkeypatch.setattr(metrics, "outlook", lambda *_, **__: None)
