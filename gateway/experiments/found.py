from __future__ import annotations

import math
from typing import cast

from core.wire.shown import shown_as
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
from gateway.experiments.verdict import MOST_MISSING, NOT_WORSE, Course, Courses, Verdict
from gateway.models import Experiment

WORST_ITEMS = 10
NEWLY_FAILED_SHOWN = 10
_HIGHEST = math.log(1e9)


_POSITIONS_SHOWN = 3


def explain(courses: Courses, *, target: str, baseline: str, items: int, of: int) -> str:
    if not items:
        return "No item has all its answers and scores yet, so that there is nothing to compare."
    looked = f"After {_number(items, 'item')}" if items == of else f"After {items:,} of {_number(of, 'item')}"
    verdict = courses.verdict()
    if verdict is Verdict.WORSE:
        title, course = max(courses.by_evaluator.items(), key=lambda one: one[1].process.peak_worse)
        return (
            f"{looked}, {target} is worse than {baseline}. {_compared(title, course, target, baseline)} "
            "Fewer than one in a hundred candidates that are no worse would ever look so bad."
        )
    if verdict is Verdict.PASSED:
        title, course = min(courses.deciding.items(), key=lambda one: one[1].process.peak_not_worse)
        return f"{looked}, {target} passed. {_compared(title, course, target, baseline)} {_ruled_out(courses, course)}"
    return f"{looked}, it is undecided whether {target} is as good as {baseline}. {_open(courses, target, baseline)}"


def _compared(title: str, course: Course, target: str, baseline: str) -> str:
    process = course.process
    found = process.difference
    if found is None:
        return f"{title} scored no pair."
    return (
        f"By {title} it scores {found.target:.2f} on average against {found.baseline:.2f} of {baseline}: "
        f"{target} is better on {process.wins:,} and worse on {_number(process.losses, 'item')}, "
        f"alike on {process.ties:,}."
    )


def _ruled_out(courses: Courses, course: Course) -> str:
    if not course.rule.required:
        return "It failed nowhere that it must not."
    return f"{_evidence(courses, course)}."


def _open(courses: Courses, target: str, baseline: str) -> str:
    deciding = courses.deciding
    if not deciding:
        return "No evaluator is required, so that nothing can pass."
    for title, course in deciding.items():
        if not course.has_scores:
            process = course.process
            return (
                f"{title} lacks scores for {process.missing:,} of {_number(process.pairs, 'pair')} "
                f"({process.target_missing:,} of {target}, {process.baseline_missing:,} of {baseline}), "
                f"and nothing passes with more than {MOST_MISSING:.0%} missing."
            )
    for title, course in deciding.items():
        if not course.is_safe:
            return _unsafe(title, course, target, baseline)
    title, course = min(deciding.items(), key=lambda one: one[1].process.peak_not_worse)
    return f"{_compared(title, course, target, baseline)} {_evidence(courses, course)}: more items may tell."


def _evidence(courses: Courses, course: Course) -> str:
    found = math.exp(course.process.peak_not_worse)
    return f"The evidence that it does not lose {courses.margin:g} or more is {found:.3g} where {NOT_WORSE:g} is needed"


def _unsafe(title: str, course: Course, target: str, baseline: str) -> str:
    if course.rule.min_rate is not None:
        return (
            f"By {title} {course.good:,} of {_number(course.process.pairs, 'answer')} of {target} are good, "
            f"{course.good / course.process.pairs:.1%} where {course.rule.min_rate:.1%} are asked for."
        )
    failed = course.newly_failed
    named = ", ".join(str(position) for position in failed[:_POSITIONS_SHOWN])
    more = ", …" if len(failed) > _POSITIONS_SHOWN else ""
    return (
        f"{title} has to pass wherever {baseline} does, and {target} fails on {_number(len(failed), 'item')} "
        f"that {baseline} passed ({named}{more})."
    )


def _number(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


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
    """The e-value of a logarithm, capped: JSON has no infinity."""
    return math.exp(min(log, _HIGHEST))


def _evaluator(target: Target, title: str, course: Course) -> EvaluatorReport:
    rule, process = course.rule, course.process
    found = process.difference
    return shown_as(
        EvaluatorReport,
        rule,
        process,
        course,
        title=title,
        target_mean=found.target if found else None,
        baseline_mean=found.baseline if found else None,
        e_worse=e_value(process.peak_worse),
        e_not_worse=e_value(process.peak_not_worse),
        difference=found.difference if found else None,
        low=found.low if found else None,
        high=found.high if found else None,
        newly_failed=course.newly_failed[:NEWLY_FAILED_SHOWN],
        newly_failed_count=len(course.newly_failed),
        unscored=_unscored(target, title),
    )


def _unscored(target: Target, title: str) -> list[EvaluatorUnscored]:
    own, other = target.target_unscored[title], target.baseline_unscored[title]
    return [{"reason": reason, "target": own[reason], "baseline": other[reason]} for reason in sorted({*own, *other})]


def _worst_items(target: Target) -> list[WorstItem]:
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
