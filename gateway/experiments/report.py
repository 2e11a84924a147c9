"""What an experiment found: the report and the verdicts, over the first items whose answers are all there.

These items come in the order in which they were drawn, which knows nothing of answers. Items that were answered out of
turn are left out until all before them are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

from django.db import transaction
from django.db.models import Min, Q

from gateway.experiments.candidates import candidates_of
from gateway.experiments.evaluators import evaluators_of
from gateway.experiments.found import target_report
from gateway.experiments.paired_scores import Readings, Target
from gateway.experiments.shapes import ExperimentReport
from gateway.experiments.totals import summarize
from gateway.experiments.verdict import LOOK_EVERY, Verdict, is_final
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem
from gateway.tables.experiment import LABELS, UNFINISHED, AnswerState, ExperimentState

_SUMMARY = "summary"
# The worst verdict first.
_ORDER = (Verdict.WORSE, Verdict.UNDECIDED, Verdict.PASSED)


def look(experiment_id: UUID) -> bool:
    """Writes the report and the verdicts anew if twenty further items are there, and returns whether the experiment may
    stop: whether further items are not waited for by any target."""
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
    rules = [evaluator.rule for evaluator in evaluators_of(experiment.evaluators)]
    found = experiment.verdicts.values()
    return bool(found) and all(is_final(Verdict(verdict), rules) for verdict in found)


def conclude(experiment_id: UUID) -> None:
    """Writes the report, the summary and the verdicts of an experiment that has ended, and its verdict if it ran to its
    end. One that stopped early keeps the verdict at which it did."""
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
    """Sums up an experiment that has ended once more, because a person picked another winner."""
    with transaction.atomic():
        experiment = Experiment.objects.select_for_update().filter(pk=experiment_id).first()
        if experiment is not None and experiment.report and _SUMMARY in experiment.report:
            experiment.report[_SUMMARY] = summarize(experiment)
            experiment.save(update_fields=["report"])


def summary_of(experiment: Experiment) -> list[Any]:
    """Returns the figures of each candidate: those that were kept when the experiment ended, or those of now."""
    kept: list[Any] | None = (experiment.report or {}).get(_SUMMARY)
    return summarize(experiment) if kept is None else kept


def report_of(experiment: Experiment) -> ExperimentReport | None:
    """Returns the report; None without evaluators, and until the first look."""
    if experiment.report is None or not experiment.evaluators:
        return None
    return cast(ExperimentReport, {name: value for name, value in experiment.report.items() if name != _SUMMARY})


def _items_there(experiment_id: UUID) -> int:
    """Returns how many items there are before the first one without all its answers."""
    answers = ExperimentAnswer.objects.filter(item__experiment_id=experiment_id)
    first: int | None = answers.exclude(state=AnswerState.DONE).aggregate(first=Min("item__position"))["first"]
    items = ExperimentItem.objects.filter(experiment_id=experiment_id)
    return (items if first is None else items.filter(position__lt=first)).count()


def _targets(experiment: Experiment, there: int, *, stops: bool) -> list[Target]:
    """Returns the targets after the first `there` items; with `stops`, after the first look at which all may stop."""
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
