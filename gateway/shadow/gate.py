"""The gate `shadow`: the rollout's own shadow has shown that its target passes (docs/experiments.md, "Shadow")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.experiments.evaluators import evaluators_of
from gateway.experiments.report import report_of
from gateway.models import Experiment, Shadow
from gateway.shadow.selection import TARGET
from gateway.tables.experiment import LABELS, UNFINISHED, ExperimentState, ExperimentVerdict
from gateway.tables.shadow import SkipReason
from rollouts.gate.registry import Finding, Question

_DELETED = "The shadow is deleted."
_PASSED = "The shadow passed: version {target} is not worse than version {baseline} by {pairs} pairs of answers."
_WORSE = "The shadow found version {target} worse than version {baseline} by {pairs} pairs of answers."
_UNDECIDED = (
    "The shadow is undecided after {pairs} pairs of answers: it shows neither that version {target} is worse than"
    " version {baseline} nor that it is not."
)
_RUNNING = "The shadow has not ended yet: {taken} of at most {limit} requests are taken, and {pairs} pairs are judged."
_LEFT_OUT = " Of {sampled} sampled requests {skipped} are left out: {reasons}."
_CANCELLED = "The shadow was cancelled after {pairs} pairs of answers."
_FAILED = "The shadow ended before it had a verdict, after {pairs} pairs of answers. {failure}"
_BY_VERDICT: Mapping[str, str] = {ExperimentVerdict.PASSED: _PASSED, ExperimentVerdict.WORSE: _WORSE}
_NOT_JUDGED: Mapping[str, Any] = {"pairs": 0, "wins": 0, "ties": 0, "losses": 0, "e_worse": 1.0, "e_not_worse": 1.0}
_REASONS: Mapping[str, str] = {
    SkipReason.NO_STORE: "nothing of it may be kept",
    SkipReason.MASKED: "a guardrail masked something",
    SkipReason.NO_TEXT: "no text",
    SkipReason.CACHED: "answered by the cache",
    SkipReason.NOT_REPEATABLE: "cannot be asked again",
    SkipReason.PROVIDER_TOOLS: "has tools of a provider",
    SkipReason.UNKNOWN_COST: "what the target may cost at most is not known",
    SkipReason.BACKLOG: "too many at once",
}


def shadow_gate(questions: Sequence[Question], *, holds: bool = False) -> list[Finding]:
    """A `rollouts.gate.registry.Check`, of two queries; `holds` locks the experiments."""
    rollouts = [question.rollout_id for question in questions]
    rows = Experiment.objects.for_project(questions[0].project_id).filter(rollout_id__in=rollouts)
    found = {row.rollout_id: row for row in (rows.select_for_update() if holds else rows)}
    shadows = Shadow.objects.in_bulk([row.pk for row in found.values()])
    return [_finding(question, found.get(question.rollout_id), shadows) for question in questions]


def _finding(question: Question, row: Experiment | None, shadows: Mapping[Any, Shadow]) -> Finding:
    if row is None:
        return Finding(is_passed=False, reason=_DELETED)
    is_passed = row.state == ExperimentState.COMPLETED and row.verdict == ExperimentVerdict.PASSED
    figures = _figures(row, shadows[row.pk])
    reason = _sentence(row).format(
        target=question.target.number,
        baseline=question.baseline.number,
        pairs=figures["pairs"],
        taken=figures["taken"],
        limit=row.item_limit,
        failure=row.failure,
    )
    left_out = _left_out(figures) if row.state in UNFINISHED else ""
    return Finding(is_passed, reason.strip() + left_out, row.pk, shadow=figures)


def _left_out(figures: Mapping[str, Any]) -> str:
    skipped: Mapping[str, int] = figures["skipped"]
    if not skipped:
        return ""
    most_first = sorted(skipped.items(), key=lambda one: (-one[1], one[0]))
    reasons = ", ".join(f"{_REASONS.get(reason, reason)} {count}" for reason, count in most_first)
    return _LEFT_OUT.format(sampled=figures["sampled"], skipped=sum(skipped.values()), reasons=reasons)


def _sentence(row: Experiment) -> str:
    if row.state in UNFINISHED:
        return _RUNNING
    if row.state == ExperimentState.COMPLETED:
        return _BY_VERDICT.get(row.verdict, _UNDECIDED)
    return _CANCELLED if row.state == ExperimentState.CANCELLED else _FAILED


def _figures(row: Experiment, shadow: Shadow) -> dict[str, Any]:
    [evaluator] = evaluators_of(row.evaluators)
    skipped = {reason: shadow.skipped[reason] for reason in sorted(shadow.skipped)}
    found = _judged(row) or _NOT_JUDGED
    return {
        "state": row.state,
        "failure": row.failure or None,
        "evaluator": {"evaluator_id": evaluator.evaluator_id, "title": evaluator.title},
        "rate": shadow.rate,
        "budget_usd": float(row.max_cost_usd or 0),
        "spent_usd": float(row.spent_usd),
        "sampled": shadow.taken + sum(skipped.values()),
        "taken": shadow.taken,
        "skipped": skipped,
        **{name: found[name] for name in _NOT_JUDGED},
        "missing": found["pairs"] - found["wins"] - found["ties"] - found["losses"],
    }


def _judged(row: Experiment) -> Mapping[str, Any] | None:
    report = report_of(row)
    targets = report["targets"] if report else []
    of_target = [one for one in targets if one["label"] == LABELS[TARGET]]
    return of_target[0]["evaluators"][0] if of_target else None
