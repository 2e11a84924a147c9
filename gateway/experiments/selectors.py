from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
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
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce
from django.db.models.sql.compiler import SQLCompiler

from analytics.models.datasets import Dataset
from core.resources.rows import get_or_raise
from core.wire.shown import shown_as
from gateway.experiments import shapes
from gateway.experiments.candidates import Candidate, candidates_of
from gateway.experiments.errors import ExperimentNotFoundError
from gateway.experiments.evaluators import ExperimentEvaluator, evaluators_of
from gateway.experiments.report import report_of, summary_of
from gateway.experiments.summary import verdict
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem, ExperimentScore
from gateway.tables.experiment import LABELS, AnswerState


def list_experiments(project_id: UUID, **filters: Any) -> QuerySet[Experiment]:
    """The newest first, with the numbers of items and answers, without reports. `filters` are values of columns."""
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
    function = "jsonb_array_length"
    output_field = IntegerField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        return self.as_sql(compiler, connection, function="json_array_length", **context)


def _count(rows: QuerySet[Any]) -> Coalesce:
    counted = rows.order_by().annotate(every=Value(1)).values("every").annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counted), 0, output_field=IntegerField())


def get_experiment(project_id: UUID, experiment_id: UUID) -> Experiment:
    """An experiment as `list_experiments` has it, with its report. Raises ExperimentNotFoundError."""
    return get_or_raise(list_experiments(project_id).defer(None), ExperimentNotFoundError, pk=experiment_id)


def list_items(experiment: Experiment) -> QuerySet[ExperimentItem]:
    scores = Prefetch("scores", ExperimentScore.objects.order_by("evaluator"))
    answers = Prefetch("answers", ExperimentAnswer.objects.order_by("candidate", "repeat").prefetch_related(scores))
    return (
        ExperimentItem.objects.filter(experiment=experiment)
        .order_by("position")
        .select_related("experiment")
        .prefetch_related(answers)
    )


def experiment_entry(experiment: Experiment) -> shapes.ExperimentEntry:
    return shown_as(
        shapes.ExperimentEntry,
        experiment,
        candidates=[_candidate(candidate) for candidate in candidates_of(experiment.candidates)],
        dataset=_dataset(experiment),
        evaluators=[_evaluator(evaluator) for evaluator in evaluators_of(experiment.evaluators)],
    )


def experiment_detail(experiment: Experiment) -> shapes.ExperimentDetail:
    return {**experiment_entry(experiment), "summary": summary_of(experiment), "report": report_of(experiment)}


def item_entry(past: ExperimentItem, *, sees_content: bool) -> shapes.ExperimentItemEntry:
    """Returns an item with its answers; texts are null without `sees_content`."""
    titles = [evaluator.title for evaluator in evaluators_of(past.experiment.evaluators)]
    return shown_as(
        shapes.ExperimentItemEntry,
        past,
        prompt_version=past.prompt_version or None,
        preview=past.preview if sees_content else None,
        verdict=verdict(past) or None,
        answers=[answer_entry(answer, titles, sees_content=sees_content) for answer in past.answers.all()],
    )


def answer_entry(
    answer: ExperimentAnswer, titles: Sequence[str], *, sees_content: bool
) -> shapes.ExperimentAnswerEntry:
    error: shapes.ExperimentAnswerError | None = None
    if answer.error_code:
        error = {"code": answer.error_code, "message": answer.error_message if sees_content else None}
    return shown_as(
        shapes.ExperimentAnswerEntry,
        answer,
        label=LABELS[answer.candidate],
        model_used=answer.model or None,
        prompt_version=answer.prompt_version or None,
        message=answer.answer if sees_content else None,
        total_tokens=answer.prompt_tokens + answer.completion_tokens,
        warning=(answer.warning or None) if sees_content else None,
        error=error,
        grades=_grades(answer.grades, sees_content=sees_content),
        judge_error=(answer.judge_error or None) if sees_content else None,
        scores=[_score(score, titles, sees_content=sees_content) for score in answer.scores.all()],
    )


def _score(score: ExperimentScore, titles: Sequence[str], *, sees_content: bool) -> shapes.ExperimentScoreEntry:
    detail = (score.detail or None) if sees_content else None
    return shown_as(shapes.ExperimentScoreEntry, score, evaluator=titles[score.evaluator], detail=detail)


def _grades(grades: Mapping[str, Any] | None, *, sees_content: bool) -> dict[str, shapes.ExperimentGrade] | None:
    if grades is None:
        return None
    return {
        name: {"score": grade["score"], "reason": grade["reason"] if sees_content else None}
        for name, grade in grades.items()
    }


def _candidate(candidate: Candidate) -> shapes.ExperimentCandidate:
    return shown_as(shapes.ExperimentCandidate, candidate, prompt_version=candidate.prompt_version or None)


def _dataset(experiment: Experiment) -> shapes.ExperimentDataset | None:
    if experiment.dataset_id is None:
        return None
    current: int | None = experiment.current_version  # type: ignore[attr-defined]  # `list_experiments` adds it.
    return {
        "id": experiment.dataset_id,
        "name": experiment.dataset_name,
        "version": experiment.dataset_version,
        "is_current": current == experiment.dataset_version,
    }


def _evaluator(evaluator: ExperimentEvaluator) -> shapes.ExperimentEvaluatorEntry:
    return shown_as(shapes.ExperimentEvaluatorEntry, evaluator, version=evaluator.number)


def experiments_with(
    project_id: UUID, *, dataset_id: UUID | None = None, evaluator_id: UUID | None = None
) -> QuerySet[Experiment]:
    """Experiments with this data set or any version of this evaluator, the newest first, without their large
    reports.
    """
    found = Experiment.objects.for_project(project_id).order_by("-created_at", "-id").defer("report")
    if dataset_id is not None:
        found = found.filter(dataset_id=dataset_id)
    if evaluator_id is not None:
        # An id occurs in no other text, and SQLite cannot ask what a list of JSON contains.
        found = found.annotate(evaluators_text=Cast("evaluators", TextField()))
        found = found.filter(evaluators_text__contains=str(evaluator_id))
    return found
