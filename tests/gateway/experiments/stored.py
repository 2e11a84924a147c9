"""Experiments with scores, written into the database as a worker leaves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import uuid4

from core.models import Project
from gateway.experiments.candidates import Candidate
from gateway.experiments.evaluators import ExperimentEvaluator
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem, ExperimentScore
from gateway.tables.experiment import LABELS, AnswerState, ExperimentState

Value = float | None


def evaluator(name: str = "good", **fields: Any) -> ExperimentEvaluator:
    return ExperimentEvaluator(
        version_id=str(uuid4()),
        evaluator_id=str(uuid4()),
        name=name,
        number=1,
        kind=fields.pop("kind", "judge"),
        **fields,
    )


@dataclass(frozen=True)
class Row:
    """What one item got: the scores of each candidate's answer (one for each repeat) by evaluator, and its tags."""

    scores: Sequence[Sequence[Value | Sequence[Value]]]
    tags: Sequence[str] = ()
    state: str = str(AnswerState.DONE)
    reason: str = "judge_failed"
    answer: Mapping[str, Any] = field(default_factory=dict)


def pair(target: Value | Sequence[Value], baseline: Value | Sequence[Value], **fields: Any) -> Row:
    """An item of two candidates and one evaluator."""
    return Row([[baseline], [target]], **fields)


def make_experiment(
    project: Project, rows: Sequence[Row], evaluators: Sequence[ExperimentEvaluator] | None = None, **fields: Any
) -> Experiment:
    count = len(rows[0].scores) if rows else 2
    scoring = [evaluator()] if evaluators is None else list(evaluators)
    fields = {"state": ExperimentState.RUNNING, "baseline": "A" if count > 1 and scoring else "", **fields}
    experiment = Experiment.objects.create(
        project=project,
        name="stored",
        candidates=[asdict(Candidate(label, temperature=float(place))) for place, label in enumerate(LABELS[:count])],
        evaluators=[asdict(one) for one in scoring],
        item_limit=max(len(rows), 1),
        **fields,
    )
    items = ExperimentItem.objects.bulk_create(
        ExperimentItem(experiment=experiment, position=position, tags=list(row.tags))
        for position, row in enumerate(rows, start=1)
    )
    answers, scores = [], []
    for item, row in zip(items, rows, strict=True):
        for candidate, by_evaluator in enumerate(row.scores):
            for repeat in range(1, experiment.repeats + 1):
                answer = ExperimentAnswer(item=item, candidate=candidate, repeat=repeat, state=row.state, **row.answer)
                answers.append(answer)
                for place, given in enumerate(by_evaluator):
                    value = given[repeat - 1] if isinstance(given, Sequence) else given
                    reason = row.reason if value is None else ""
                    scores.append(ExperimentScore(answer=answer, evaluator=place, value=value, reason=reason))
    ExperimentAnswer.objects.bulk_create(answers, batch_size=1000)
    ExperimentScore.objects.bulk_create(scores, batch_size=1000)
    return experiment
