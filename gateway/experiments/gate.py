"""The gate `experiment`: an experiment over the current version of a data set has shown that a rollout's target passes
against its baseline (docs/rollouts.md, "Gate")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast

from analytics.models import Dataset
from gateway.experiments.candidates import Candidate, candidates_of
from gateway.models import Experiment
from gateway.tables.experiment import UNFINISHED, ExperimentState, ExperimentVerdict
from rollouts.gate.registry import Finding, Question


class _Result(NamedTuple):
    """What an experiment means to a gate, in a sentence. A higher rank is closer to opening it."""

    rank: int
    sentence: str


_PASSED = _Result(8, "{name} passed over version {used} of {dataset}.")
_RUNNING = _Result(7, "{name} has not ended yet.")
_WORSE = _Result(6, "{name} found version {target} worse than version {baseline}.")
_UNDECIDED = _Result(6, "{name} is undecided: it shows neither that version {target} is worse nor that it is not.")
_NO_VERDICT = _Result(6, "{name} has no verdict on version {target}.")
_CANCELLED = _Result(5, "{name} was cancelled.")
_FAILED = _Result(5, "{name} failed before it had a verdict.")
_DATASET_CHANGED = _Result(4, "{name} is over version {used} of {dataset}, which is at version {current} now.")
_DATASET_DELETED = _Result(4, "{name} is over {dataset}, which is deleted.")
_TOO_OLD = _Result(3, "{name} is older than versions {baseline} and {target}.")
_UNLIKE = _Result(2, "{name} gives versions {baseline} and {target} different models or parameters.")
_OTHER_BASELINE = _Result(1, "{name} compares version {target} with another baseline than version {baseline}: {other}.")
_NO_BASELINE = _Result(1, "{name} has no baseline, and so no verdict on version {target}.")
_OTHER_DATASET = _Result(0, "{name} is over {dataset}, and the gate asks for another one.")

_NONE = "No experiment over a data set compares version {target} with version {baseline}, the baseline."
_OF_VERDICTS = {
    ExperimentVerdict.PASSED.value: _PASSED,
    ExperimentVerdict.WORSE.value: _WORSE,
    ExperimentVerdict.UNDECIDED.value: _UNDECIDED,
}


@dataclass(frozen=True, slots=True)
class _Trial:
    experiment: Experiment
    target: Candidate
    baseline: Candidate | None
    current: int | None  # The present version of the data set; None if it is deleted.


def experiment_gate(questions: Sequence[Question], *, holds: bool = False) -> list[Finding]:
    """A `rollouts.gate.registry.Check`, of one query; `holds` locks the data sets first."""
    experiments = _experiments(questions)
    if holds:
        concerned = Dataset.objects.filter(pk__in=experiments.order_by().values("dataset_id")).order_by("pk")
        list(concerned.select_for_update().values_list("pk"))
    found = list(experiments)
    return [_finding(question, found) for question in questions]


def _experiments(questions: Sequence[Question]) -> QuerySet[Experiment]:
    current = Dataset.objects.filter(pk=OuterRef("dataset_id"), project=OuterRef("project_id")).values("version")
    concerned = Q()
    for question in questions:
        concerned |= Q(candidates_text__contains=str(question.target.pk))
    return (
        Experiment.objects.for_project(questions[0].project_id)
        .filter(dataset_id__isnull=False)
        .annotate(candidates_text=Cast("candidates", TextField()), current_version=Subquery(current))
        .filter(concerned)
        .order_by("-created_at", "-id")
        .defer("report", "evaluators", "filter")
    )


def _finding(question: Question, experiments: Sequence[Experiment]) -> Finding:
    results = [(_result(question, trial), trial) for trial in _trials(question, experiments)]
    if not results:
        missing = _NONE.format(target=question.target.number, baseline=question.baseline.number)
        return Finding(is_passed=False, reason=missing)
    result, trial = max(results, key=lambda one: one[0].rank)
    return Finding(
        is_passed=result is _PASSED,
        reason=_sentence(result, question, trial),
        experiment_id=trial.experiment.pk,
        dataset_id=trial.experiment.dataset_id,
        dataset_version=trial.experiment.dataset_version,
    )


def _trials(question: Question, experiments: Sequence[Experiment]) -> Iterator[_Trial]:
    for row in experiments:
        candidates = candidates_of(row.candidates)
        baseline = next((one for one in candidates if one.label == row.baseline), None)
        annotated: Any = row
        for one in candidates:
            if one.version_id == str(question.target.pk) and one is not baseline:
                yield _Trial(row, one, baseline, annotated.current_version)


def _result(question: Question, trial: _Trial) -> _Result:
    if question.dataset_id not in (None, trial.experiment.dataset_id):
        return _OTHER_DATASET
    if trial.baseline is None:
        return _NO_BASELINE
    if trial.baseline.version_id != str(question.baseline.pk):
        return _OTHER_BASELINE
    if _settings(trial.baseline) != _settings(trial.target):
        return _UNLIKE
    if trial.experiment.created_at < max(question.baseline.created_at, question.target.created_at):
        return _TOO_OLD
    if trial.current is None:
        return _DATASET_DELETED
    if trial.current != trial.experiment.dataset_version:
        return _DATASET_CHANGED
    return _end(trial)


def _end(trial: _Trial) -> _Result:
    row = trial.experiment
    if row.state in UNFINISHED:
        return _RUNNING
    if row.state == ExperimentState.COMPLETED:
        return _OF_VERDICTS.get(row.verdicts.get(trial.target.label), _NO_VERDICT)
    return _CANCELLED if row.state == ExperimentState.CANCELLED else _FAILED


def _settings(candidate: Candidate) -> tuple[str, float | None, int | None]:
    return candidate.model, candidate.temperature, candidate.max_tokens


def _sentence(result: _Result, question: Question, trial: _Trial) -> str:
    row = trial.experiment
    return result.sentence.format(
        name=f"Experiment “{row.name or row.pk}”",
        dataset=f"the data set “{row.dataset_name}”",
        used=row.dataset_version,
        current=trial.current,
        target=question.target.number,
        baseline=question.baseline.number,
        other=trial.baseline.title if trial.baseline else "",
    )
