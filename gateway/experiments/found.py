"""What the report of an experiment says about one target."""

from __future__ import annotations

import math
from typing import cast

from gateway.experiments.explanation import explain
from gateway.experiments.paired_scores import Target
from gateway.experiments.shapes import (
    EvaluatorReport,
    EvaluatorUnscored,
    Label,
    TargetReport,
    VerdictName,
    WorseTag,
    WorstItem,
)
from gateway.experiments.verdict import Course
from gateway.models import Experiment

WORST_ITEMS = 10
NEWLY_FAILED_SHOWN = 10
_HIGHEST = math.log(1e9)


def target_report(target: Target, experiment: Experiment, item_count: int) -> TargetReport:
    courses = target.courses
    return {
        "label": cast(Label, target.candidate.label),
        "title": target.candidate.title,
        "verdict": cast(VerdictName, str(courses.verdict())),
        "explanation": explain(
            courses, target=target.candidate.label, baseline=experiment.baseline, items=target.items, of=item_count
        ),
        "e_worse": e_value(courses.peak_worse),
        "evaluators": [_evaluator(target, title, course) for title, course in courses.by_evaluator.items()],
        "worst_items": _worst_items(target),
        "worse_tags": [_tag(target, *key) for key in courses.worse_tags()],
    }


def e_value(log: float) -> float:
    """Returns an e-value by its logarithm, capped: JSON has no number that is larger than all."""
    return math.exp(min(log, _HIGHEST))


def _evaluator(target: Target, title: str, course: Course) -> EvaluatorReport:
    rule, process = course.rule, course.process
    found = process.difference
    return {
        "title": title,
        "required": rule.is_required,
        "must_pass": rule.must_pass,
        "min_rate": rule.min_rate,
        "passes": course.passes,
        "target_mean": found.target if found else None,
        "baseline_mean": found.baseline if found else None,
        "difference": found.difference if found else None,
        "low": found.low if found else None,
        "high": found.high if found else None,
        "wins": process.wins,
        "ties": process.ties,
        "losses": process.losses,
        "pairs": process.pairs,
        "target_missing": process.target_missing,
        "baseline_missing": process.baseline_missing,
        "e_worse": e_value(process.peak_worse),
        "e_not_worse": e_value(process.peak_not_worse),
        "good_rate": course.good_rate,
        "newly_failed": course.newly_failed[:NEWLY_FAILED_SHOWN],
        "newly_failed_count": len(course.newly_failed),
        "unscored": _unscored(target, title),
    }


def _unscored(target: Target, title: str) -> list[EvaluatorUnscored]:
    own, other = target.target_unscored[title], target.baseline_unscored[title]
    return [{"reason": reason, "target": own[reason], "baseline": other[reason]} for reason in sorted({*own, *other})]


def _worst_items(target: Target) -> list[WorstItem]:
    """Returns the items on which the target loses most, by the sum of the differences of all evaluators."""
    lost = sorted(
        (one for one in target.differences if one.difference < 0), key=lambda one: (one.difference, one.position)
    )
    return [
        {
            "position": one.position,
            "difference": one.difference,
            "scores": {title: {"target": pair.target, "baseline": pair.baseline} for title, pair in one.pairs.items()},
        }
        for one in lost[:WORST_ITEMS]
    ]


def _tag(target: Target, title: str, tag: str) -> WorseTag:
    process = target.courses.by_tag[title, tag]
    found = process.difference
    return {"evaluator": title, "tag": tag, "pairs": process.pairs, "difference": found.difference if found else 0.0}
