"""The report and the verdicts, over the first items whose answers are all there.

Items count in the order of the draw, which is independent of the answers. Those answered out of turn are left out until
all before them are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from django.db import transaction
from django.db.models import Avg, Count, F, FloatField, Min, Q, Value
from django.db.models.functions import Cast, Coalesce

from analytics.agreement import wilson
from core.ledger import NOTHING, SumOfDollars
from gateway.experiments.candidates import candidates_of
from gateway.experiments.evaluators import evaluators_of
from gateway.experiments.found import target_report
from gateway.experiments.paired_scores import Readings, Target
from gateway.experiments.shapes import CandidateScores, ExperimentFigures, ExperimentReport, Label
from gateway.experiments.summary import MIN_SCORE_DIFFERENCE
from gateway.experiments.verdict import LOOK_EVERY, Verdict, is_final
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem, ExperimentScore
from gateway.tables.experiment import LABELS, TIE, UNFINISHED, AnswerState, ExperimentState

_SUMMARY = "summary"
# The worst verdict first.
_ORDER = (Verdict.WORSE, Verdict.UNDECIDED, Verdict.PASSED)


# Below all grades of a judge, which are from 0 to 100: the grade of a candidate that has none.
_NO_GRADE = -1e6
_DONE = Q(state=AnswerState.DONE)
_GOOD = _DONE & Q(error_code="")


def summarize(experiment: Experiment) -> list[ExperimentFigures]:
    """The figures of each candidate, with three queries at most.

    Means are None without a value. Of the `compared` items, which have a winner or a tie, it won `wins`; `win_rate`
    counts ties as half, with the bounds of its 95 % interval.
    """
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
            cost=SumOfDollars("cost_usd"),
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
    cost, costs = row.get("cost") or NOTHING, row.get("costs", 0)
    return {
        "label": label,
        "answered": row.get("answered", 0),
        "failed": row.get("failed", 0),
        "pending": row.get("pending", 0),
        "total_cost_usd": float(cost),
        "mean_cost_usd": float(cost / costs) if costs else None,
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


def look(experiment_id: UUID) -> bool:
    """Updates the report and the verdicts after every twenty further items. Returns whether the experiment may stop: no
    target waits for more."""
    experiment = Experiment.objects.filter(pk=experiment_id, state__in=UNFINISHED).first()
    if experiment is None or not experiment.baseline or not experiment.evaluators:
        return False
    judged: int = experiment.report["items_judged"] if experiment.report else 0
    there = _items_there(experiment_id)
    there -= there % LOOK_EVERY
    if there > judged:
        targets = _targets(experiment, there, stops=True)
        experiment.report = {**_report(experiment, targets)}
        experiment.verdicts = _verdicts(targets)
        # Another worker may have looked at more items meanwhile, or the experiment may have ended.
        earlier = Q(report__isnull=True) | Q(report__items_judged__lt=experiment.report["items_judged"])
        Experiment.objects.filter(earlier, pk=experiment_id, state__in=UNFINISHED).update(
            report=experiment.report, verdicts=experiment.verdicts
        )
    rules = evaluators_of(experiment.evaluators)
    found = experiment.verdicts.values()
    return bool(found) and all(is_final(Verdict(verdict), rules) for verdict in found)


def conclude(experiment_id: UUID) -> None:
    """Writes the report, summary and verdicts of an experiment that has ended. One that stopped early keeps the verdict
    of that time."""
    with transaction.atomic():
        experiment = Experiment.objects.select_for_update().filter(pk=experiment_id).first()
        if experiment is None or experiment.state in UNFINISHED:
            return
        is_compared = bool(experiment.baseline and experiment.evaluators)
        there = _items_there(experiment_id)
        targets = _targets(experiment, there, stops=experiment.stopped_early) if is_compared else []
        experiment.verdicts = _verdicts(targets)
        if targets and experiment.state == ExperimentState.COMPLETED:
            experiment.verdict = str(next(one for one in _ORDER if str(one) in experiment.verdicts.values()))
        experiment.report = {**_report(experiment, targets), _SUMMARY: summarize(experiment)}
        experiment.save(update_fields=["report", "verdicts", "verdict"])


def keep_summary(experiment_id: UUID) -> None:
    with transaction.atomic():
        experiment = Experiment.objects.select_for_update().filter(pk=experiment_id).first()
        if experiment is not None and experiment.report and _SUMMARY in experiment.report:
            experiment.report[_SUMMARY] = summarize(experiment)
            experiment.save(update_fields=["report"])


def summary_of(experiment: Experiment) -> list[Any]:
    kept: list[Any] | None = (experiment.report or {}).get(_SUMMARY)
    return summarize(experiment) if kept is None else kept


def report_of(experiment: Experiment) -> ExperimentReport | None:
    if experiment.report is None or not experiment.evaluators:
        return None
    return cast(ExperimentReport, {name: value for name, value in experiment.report.items() if name != _SUMMARY})


def _items_there(experiment_id: UUID) -> int:
    answers = ExperimentAnswer.objects.filter(item__experiment_id=experiment_id)
    first: int | None = answers.exclude(state=AnswerState.DONE).aggregate(first=Min("item__position"))["first"]
    items = ExperimentItem.objects.filter(experiment_id=experiment_id)
    return (items if first is None else items.filter(position__lt=first)).count()


def _targets(experiment: Experiment, there: int, *, stops: bool) -> list[Target]:
    """The targets after the first `there` items; with `stops`, after the first look at which all may stop."""
    evaluators = evaluators_of(experiment.evaluators)
    readings = Readings(experiment, evaluators, there)
    baseline = LABELS.index(experiment.baseline)
    targets = [
        Target(candidate, index, baseline, evaluators, experiment.margin)
        for index, candidate in enumerate(candidates_of(experiment.candidates))
        if index != baseline
    ]
    for number, item in enumerate(readings.items, start=1):
        for target in targets:
            target.add(item, readings)
        if stops and number % LOOK_EVERY == 0 and all(target.courses.may_stop() for target in targets):
            break
    return targets


def _report(experiment: Experiment, targets: Sequence[Target]) -> ExperimentReport:
    item_count = ExperimentItem.objects.filter(experiment=experiment).count()
    judged = targets[0].items if targets else _items_there(experiment.pk) if experiment.evaluators else 0
    return {
        "items_judged": judged,
        "item_count": item_count,
        "targets": [target_report(target, experiment, item_count) for target in targets],
    }


def _verdicts(targets: Sequence[Target]) -> dict[str, str]:
    return {target.candidate.label: str(target.courses.verdict()) for target in targets}
