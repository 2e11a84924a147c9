"""Reads trials and presents them; pages and the API show the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from django.db.models import Count, OuterRef, Prefetch, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from gateway.models import Trial, TrialAnswer, TrialInput
from gateway.tables.trial import LABELS, AnswerState
from gateway.trials import shapes
from gateway.trials.candidates import Candidate, candidates_of
from gateway.trials.errors import TrialNotFoundError
from gateway.trials.summary import AnswerFigures, InputFigures, summarize, verdict

_ANSWER_TEXTS = ("message", "warning", "judge_error")


def list_trials(project_id: UUID) -> QuerySet[Trial]:
    """Returns the trials, the newest first, with the numbers of their inputs and answers."""
    answers = TrialAnswer.objects.filter(input__trial=OuterRef("pk"))
    # Subqueries count for the rows of a page alone; a join would count for all trials first.
    return (
        Trial.objects.for_project(project_id)
        .order_by("-created_at", "-id")
        .annotate(
            input_count=_count(TrialInput.objects.filter(trial=OuterRef("pk"))),
            answer_count=_count(answers),
            done_count=_count(answers.filter(state=AnswerState.DONE)),
        )
    )


def _count(rows: QuerySet[Any]) -> Coalesce:
    counted = rows.order_by().annotate(every=Value(1)).values("every").annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counted), 0)


def get_trial(project_id: UUID, trial_id: UUID) -> Trial:
    """Returns a trial as `list_trials` does. Raises TrialNotFoundError."""
    trial = list_trials(project_id).filter(pk=trial_id).first()
    if trial is None:
        raise TrialNotFoundError
    return trial


def list_inputs(trial: Trial) -> QuerySet[TrialInput]:
    """Returns the inputs with their answers, in the order of the sample."""
    answers = Prefetch("answers", TrialAnswer.objects.order_by("candidate"))
    return TrialInput.objects.filter(trial=trial).order_by("position").prefetch_related(answers)


def trial_entry(trial: Trial) -> shapes.TrialEntry:
    counts: Any = trial
    return {
        "id": trial.pk,
        "name": trial.name,
        "state": cast(shapes.State, trial.state),
        "failure": trial.failure or None,
        "created_by": trial.created_by,
        "created_at": trial.created_at,
        "started_at": trial.started_at,
        "ended_at": trial.ended_at,
        "candidates": [_candidate(candidate) for candidate in candidates_of(trial.candidates)],
        "filter": trial.filter,
        "order": cast(Any, trial.order),
        "judge": trial.judge,
        "input_count": counts.input_count,
        "answer_count": counts.answer_count,
        "done_count": counts.done_count,
    }


def trial_detail(trial: Trial) -> shapes.TrialDetail:
    """Returns a trial with the summary of each candidate, from all its answers."""
    return {**trial_entry(trial), "summary": _summary(trial)}


def input_entry(past: TrialInput, *, sees_content: bool) -> shapes.TrialInputEntry:
    """Returns an input with its answers; texts are null without `sees_content`."""
    found = verdict(_figures_of(past, list(past.answers.all())))
    return {
        "position": past.position,
        "request_id": past.request_id,
        "requested_at": past.requested_at,
        "prompt_config_id": past.prompt_config_id,
        "prompt_version": past.prompt_version or None,
        "preview": past.preview if sees_content else None,
        "winner": cast(Any, past.winner or None),
        "winner_by": past.winner_by or None,
        "verdict": cast(Any, found or None),
        "answers": [answer_entry(answer, sees_content=sees_content) for answer in past.answers.all()],
    }


def answer_entry(answer: TrialAnswer, *, sees_content: bool) -> shapes.TrialAnswerEntry:
    error: shapes.TrialAnswerError | None = None
    if answer.error_code:
        error = {"code": answer.error_code, "message": answer.error_message if sees_content else None}
    shown: shapes.TrialAnswerEntry = {
        "label": cast(shapes.Label, LABELS[answer.candidate]),
        "state": cast(Any, answer.state),
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
    }
    if sees_content:
        return shown
    return cast(shapes.TrialAnswerEntry, {**shown, **dict.fromkeys(_ANSWER_TEXTS)})


def _grades(grades: Mapping[str, Any] | None, *, sees_content: bool) -> dict[str, shapes.TrialGrade] | None:
    if grades is None:
        return None
    return {
        name: {"score": grade["score"], "reason": grade["reason"] if sees_content else None}
        for name, grade in grades.items()
    }


def _candidate(candidate: Candidate) -> shapes.TrialCandidate:
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


def _summary(trial: Trial) -> list[shapes.TrialFigures]:
    figures = TrialAnswer.objects.order_by("candidate").only(
        "input_id", "candidate", "state", "error_code", "cost_usd", "latency_ms", "prompt_tokens",
        "completion_tokens", "score",
    )  # fmt: skip
    inputs = TrialInput.objects.filter(trial=trial).prefetch_related(Prefetch("answers", figures))
    labels = [cast(shapes.Label, candidate.label) for candidate in candidates_of(trial.candidates)]
    return summarize(labels, [_figures_of(past, list(past.answers.all())) for past in inputs])


def _figures_of(past: TrialInput, answers: Sequence[TrialAnswer]) -> InputFigures:
    return InputFigures([_answer_figures(answer) for answer in answers], past.winner)


def _answer_figures(answer: TrialAnswer) -> AnswerFigures:
    return AnswerFigures(
        label=LABELS[answer.candidate],
        is_done=answer.state == AnswerState.DONE,
        failed=bool(answer.error_code),
        cost_usd=answer.cost_usd,
        latency_ms=answer.latency_ms,
        total_tokens=answer.prompt_tokens + answer.completion_tokens,
        score=answer.score,
    )
