"""Reads experiments and presents them; pages and the API show the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    Case,
    Count,
    F,
    Func,
    IntegerField,
    OuterRef,
    Prefetch,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from django.db.models.sql.compiler import SQLCompiler

from analytics.models.datasets import Dataset
from gateway.experiments import shapes
from gateway.experiments.candidates import Candidate, candidates_of
from gateway.experiments.errors import ExperimentNotFoundError
from gateway.experiments.evaluators import ExperimentEvaluator, evaluators_of
from gateway.experiments.report import report_of, summary_of
from gateway.experiments.summary import AnswerFigures, ItemFigures, verdict
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem, ExperimentScore
from gateway.tables.experiment import LABELS, AnswerState

_ANSWER_TEXTS = ("message", "warning", "judge_error")


def list_experiments(project_id: UUID, **filters: Any) -> QuerySet[Experiment]:
    """Returns the experiments, the newest first, with the numbers of their items and answers and without their reports.
    `filters` are values of their columns."""
    items = _count(ExperimentItem.objects.filter(experiment=OuterRef("pk")))
    # Each item has an answer of each candidate and repeat; to count them would take longer than a page may.
    answers = items * F("repeats") * _Length("candidates")
    done = ExperimentAnswer.objects.filter(item__experiment=OuterRef("pk"), state=AnswerState.DONE)
    kept = When(done_answers__isnull=False, then=F("done_answers"))
    # Subqueries count for the rows of a page alone; a join would count for all experiments first.
    return (
        Experiment.objects.for_project(project_id)
        .filter(**filters)
        .order_by("-created_at", "-id")
        .defer("report")
        .annotate(
            item_count=items,
            answer_count=answers,
            done_count=Case(kept, default=_count(done)),
            current_version=Subquery(Dataset.objects.filter(pk=OuterRef("dataset_id")).values("version")[:1]),
        )
    )


class _Length(Func):
    """The number of members of an array in JSON."""

    function = "jsonb_array_length"
    output_field = IntegerField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        return self.as_sql(compiler, connection, function="json_array_length", **context)


def _count(rows: QuerySet[Any]) -> Coalesce:
    counted = rows.order_by().annotate(every=Value(1)).values("every").annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counted), 0, output_field=IntegerField())


def get_experiment(project_id: UUID, experiment_id: UUID) -> Experiment:
    """Returns an experiment as `list_experiments` does, with its report. Raises ExperimentNotFoundError."""
    experiment = list_experiments(project_id).defer(None).filter(pk=experiment_id).first()
    if experiment is None:
        raise ExperimentNotFoundError
    return experiment


def list_items(experiment: Experiment) -> QuerySet[ExperimentItem]:
    """Returns the items with their answers, in the order of the sample."""
    scores = Prefetch("scores", ExperimentScore.objects.order_by("evaluator"))
    answers = Prefetch("answers", ExperimentAnswer.objects.order_by("candidate", "repeat").prefetch_related(scores))
    return (
        ExperimentItem.objects.filter(experiment=experiment)
        .order_by("position")
        .select_related("experiment")
        .prefetch_related(answers)
    )


def experiment_entry(experiment: Experiment) -> shapes.ExperimentEntry:
    counts: Any = experiment
    return {
        "id": experiment.pk,
        "name": experiment.name,
        "state": cast(shapes.State, experiment.state),
        "failure": experiment.failure or None,
        "created_by": experiment.created_by,
        "created_at": experiment.created_at,
        "started_at": experiment.started_at,
        "ended_at": experiment.ended_at,
        "candidates": [_candidate(candidate) for candidate in candidates_of(experiment.candidates)],
        "filter": experiment.filter,
        "order": cast(Any, experiment.order),
        "judge": experiment.judge,
        "dataset": _dataset(experiment, counts.current_version),
        "rollout_id": experiment.rollout_id,
        "evaluators": [_evaluator(evaluator) for evaluator in evaluators_of(experiment.evaluators)],
        "repeats": experiment.repeats,
        "baseline": cast(Any, experiment.baseline or None),
        "margin": experiment.margin,
        "reuse": experiment.reuse,
        "max_cost_usd": None if experiment.max_cost_usd is None else float(experiment.max_cost_usd),
        "spent_usd": float(experiment.spent_usd),
        "verdict": cast(Any, experiment.verdict or None),
        "stopped_early": experiment.stopped_early,
        "failure_code": cast(Any, experiment.failure_code or None),
        "erased_items": experiment.erased_items,
        "expired_items": experiment.expired_items,
        "item_count": counts.item_count,
        "answer_count": counts.answer_count,
        "done_count": counts.done_count,
    }


def experiment_detail(experiment: Experiment) -> shapes.ExperimentDetail:
    """Returns an experiment with the summary of each candidate and its report."""
    return {**experiment_entry(experiment), "summary": summary_of(experiment), "report": report_of(experiment)}


def item_entry(past: ExperimentItem, *, sees_content: bool) -> shapes.ExperimentItemEntry:
    """Returns an item with its answers; texts are null without `sees_content`."""
    found = verdict(_figures_of(past, list(past.answers.all())))
    titles = [evaluator.title for evaluator in evaluators_of(past.experiment.evaluators)]
    return {
        "position": past.position,
        "dataset_item_id": past.dataset_item_id,
        "tags": past.tags,
        "request_id": past.request_id,
        "requested_at": past.requested_at,
        "prompt_config_id": past.prompt_config_id,
        "prompt_version": past.prompt_version or None,
        "preview": past.preview if sees_content else None,
        "winner": cast(Any, past.winner or None),
        "winner_by": past.winner_by or None,
        "verdict": cast(Any, found or None),
        "answers": [answer_entry(answer, titles, sees_content=sees_content) for answer in past.answers.all()],
    }


def answer_entry(
    answer: ExperimentAnswer, titles: Sequence[str], *, sees_content: bool
) -> shapes.ExperimentAnswerEntry:
    """Returns an answer with its scores by the evaluators of these titles."""
    error: shapes.ExperimentAnswerError | None = None
    if answer.error_code:
        error = {"code": answer.error_code, "message": answer.error_message if sees_content else None}
    shown: shapes.ExperimentAnswerEntry = {
        "label": cast(shapes.Label, LABELS[answer.candidate]),
        "repeat": answer.repeat,
        "state": cast(Any, answer.state),
        "reused": answer.reused,
        "request_id": answer.request_id or None,
        "provider": answer.provider or None,
        "model_used": answer.model or None,
        "prompt_version": answer.prompt_version or None,
        "message": answer.answer,
        "finish_reason": answer.finish_reason or None,
        "cost_usd": None if answer.cost_usd is None else float(answer.cost_usd),
        "latency_ms": answer.latency_ms,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
        "warning": answer.warning or None,
        "error": error,
        "score": answer.score,
        "grades": _grades(answer.grades, sees_content=sees_content),
        "judge_error": answer.judge_error or None,
        "scores": [_score(score, titles, sees_content=sees_content) for score in answer.scores.all()],
    }
    if sees_content:
        return shown
    return cast(shapes.ExperimentAnswerEntry, {**shown, **dict.fromkeys(_ANSWER_TEXTS)})


def _score(score: ExperimentScore, titles: Sequence[str], *, sees_content: bool) -> shapes.ExperimentScoreEntry:
    return {
        "evaluator": titles[score.evaluator],
        "value": score.value,
        "reason": score.reason or None,
        "detail": (score.detail or None) if sees_content else None,
        "cost_usd": None if score.cost_usd is None else float(score.cost_usd),
        "request_ids": score.request_ids,
        "reused": score.reused,
    }


def _grades(grades: Mapping[str, Any] | None, *, sees_content: bool) -> dict[str, shapes.ExperimentGrade] | None:
    if grades is None:
        return None
    return {
        name: {"score": grade["score"], "reason": grade["reason"] if sees_content else None}
        for name, grade in grades.items()
    }


def _candidate(candidate: Candidate) -> shapes.ExperimentCandidate:
    return {
        "label": cast(shapes.Label, candidate.label),
        "title": candidate.title,
        "prompt_config_id": UUID(candidate.prompt_config_id) if candidate.prompt_config_id else None,
        "prompt_name": candidate.prompt_name or None,
        "version_id": UUID(candidate.version_id) if candidate.version_id else None,
        "prompt_version": candidate.prompt_version or None,
        "model": candidate.model or None,
        "temperature": candidate.temperature,
        "max_tokens": candidate.max_tokens,
    }


def _dataset(experiment: Experiment, current: int | None) -> shapes.ExperimentDataset | None:
    """Returns the data set, which may have been deleted: then no version is current."""
    if experiment.dataset_id is None:
        return None
    return {
        "id": experiment.dataset_id,
        "name": experiment.dataset_name,
        "version": experiment.dataset_version,
        "is_current": current == experiment.dataset_version,
    }


def _evaluator(evaluator: ExperimentEvaluator) -> shapes.ExperimentEvaluatorEntry:
    return {
        "name": evaluator.name,
        "version": evaluator.number,
        "title": evaluator.title,
        "evaluator_id": UUID(evaluator.evaluator_id),
        "kind": evaluator.kind,
        "required": evaluator.required,
        "must_pass": evaluator.must_pass,
        "min_rate": evaluator.min_rate,
    }


def _figures_of(past: ExperimentItem, answers: Sequence[ExperimentAnswer]) -> ItemFigures:
    return ItemFigures([_answer_figures(answer) for answer in answers], past.winner)


def _answer_figures(answer: ExperimentAnswer) -> AnswerFigures:
    return AnswerFigures(
        label=LABELS[answer.candidate],
        is_done=answer.state == AnswerState.DONE,
        failed=bool(answer.error_code),
        score=answer.score,
    )
