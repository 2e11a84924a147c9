"""Sums up the answers of an experiment in the database: there are up to 10,000, and its page asks often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from uuid import UUID

from django.db.models import Avg, Count, F, FloatField, Q, Sum, Value
from django.db.models.functions import Cast, Coalesce

from gateway.experiments.candidates import candidates_of
from gateway.experiments.evaluators import evaluators_of
from gateway.experiments.shapes import CandidateScores, ExperimentFigures, Label
from gateway.experiments.summary import MIN_SCORE_DIFFERENCE, wilson
from gateway.models import Experiment, ExperimentAnswer, ExperimentScore
from gateway.tables.experiment import LABELS, TIE, AnswerState

# Below all grades of a judge, which are from 0 to 100: the grade of a candidate that has none.
_NO_GRADE = -1e6
_DONE = Q(state=AnswerState.DONE)
_GOOD = _DONE & Q(error_code="")


def summarize(experiment: Experiment) -> list[ExperimentFigures]:
    """Returns the figures of each candidate, with three queries at most. Means are None without a value. Of the
    `compared` items, which have a winner or a tie, it won `wins`; `win_rate` counts ties as half, with the bounds of
    its 95 % interval."""
    labels = [cast(Label, candidate.label) for candidate in candidates_of(experiment.candidates)]
    titles = [evaluator.title for evaluator in evaluators_of(experiment.evaluators)]
    totals, winners = _totals(experiment.pk), count_winners(experiment.pk)
    scores = _scores(experiment.pk) if titles else {}
    return [
        _figures(
            label,
            totals.get(index, {}),
            winners,
            [_scores_of(title, scores.get((index, place), {})) for place, title in enumerate(titles)],
        )
        for index, label in enumerate(labels)
    ]


def count_winners(experiment_id: UUID) -> Mapping[str, int]:
    """Returns how many items each label won, and how many tied, as `summary.verdict` decides."""
    grades = {
        f"grade_{label}": Coalesce(Avg("score", filter=_GOOD & Q(candidate=index)), Value(_NO_GRADE))
        for index, label in enumerate(LABELS)
    }
    items = (
        ExperimentAnswer.objects.filter(item__experiment_id=experiment_id)
        .order_by()
        .values("item_id", picked=F("item__winner"))
        .annotate(
            waiting=Count("pk", filter=~_DONE),
            graded=Count("score", filter=_GOOD),
            ungraded=Count("pk", filter=_GOOD & Q(score=None)),
            **grades,
        )
    )
    judged = Q(picked="", waiting=0, ungraded=0, graded__gt=0)
    asked = {label: Count("item_id", filter=Q(picked=label) | (judged & _leads(label))) for label in LABELS}
    found: dict[str, int] = items.aggregate(**asked, compared=Count("item_id", filter=~Q(picked="") | judged))
    return {**found, TIE: found["compared"] - sum(found[label] for label in LABELS)}


def _leads(label: str) -> Q:
    """Returns whether the label's grade is above all others' by enough to prefer its answer."""
    leads = Q()
    for other in LABELS:
        if other != label:
            leads &= Q(**{f"grade_{other}__lte": F(f"grade_{label}") - MIN_SCORE_DIFFERENCE})
    return leads


def _totals(experiment_id: UUID) -> Mapping[int, Mapping[str, Any]]:
    tokens = F("prompt_tokens") + F("completion_tokens")
    rows = (
        ExperimentAnswer.objects.filter(item__experiment_id=experiment_id)
        .order_by()
        .values("candidate")
        .annotate(
            answered=Count("pk", filter=_GOOD),
            failed=Count("pk", filter=_DONE & ~Q(error_code="")),
            pending=Count("pk", filter=~_DONE),
            cost=Sum("cost_usd"),
            costs=Count("cost_usd"),
            latency=Avg("latency_ms", filter=_GOOD),
            tokens=Avg(Cast(tokens, FloatField()), filter=_GOOD),
            grade=Avg("score", filter=_GOOD),
        )
    )
    return {row["candidate"]: row for row in rows}


def _scores(experiment_id: UUID) -> Mapping[tuple[int, int], Mapping[str, Any]]:
    rows = (
        ExperimentScore.objects.filter(answer__item__experiment_id=experiment_id)
        .order_by()
        .values("evaluator", candidate=F("answer__candidate"))
        .annotate(mean=Avg("value"), scored=Count("value"), rows=Count("pk"))
    )
    return {(row["candidate"], row["evaluator"]): row for row in rows}


def _scores_of(title: str, row: Mapping[str, Any]) -> CandidateScores:
    scored = row.get("scored", 0)
    return {"evaluator": title, "mean": row.get("mean"), "scored": scored, "unscored": row.get("rows", 0) - scored}


def _figures(
    label: Label, row: Mapping[str, Any], winners: Mapping[str, int], scores: list[CandidateScores]
) -> ExperimentFigures:
    wins, ties, compared = winners[label], winners[TIE], winners["compared"]
    low, high = wilson(wins + ties / 2, compared) if compared else (None, None)
    cost, costs = float(row.get("cost") or 0), row.get("costs", 0)
    return {
        "label": label,
        "answered": row.get("answered", 0),
        "failed": row.get("failed", 0),
        "pending": row.get("pending", 0),
        "total_cost_usd": cost,
        "mean_cost_usd": cost / costs if costs else None,
        "mean_latency_ms": _number(row.get("latency")),
        "mean_tokens": _number(row.get("tokens")),
        "mean_score": _number(row.get("grade")),
        "wins": wins,
        "ties": ties,
        "compared": compared,
        "win_rate": (wins + ties / 2) / compared if compared else None,
        "win_rate_low": low,
        "win_rate_high": high,
        "scores": scores,
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
