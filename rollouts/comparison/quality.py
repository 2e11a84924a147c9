from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.utils import timezone

from analytics.online_evaluations.ended import TaskCounts, counts_by_arm
from analytics.online_evaluations.matched import matched_evaluations
from analytics.queries.variants import BASELINE, TARGET
from analytics.queries.variants.scored import units_by_arm
from rollouts.evaluation.json_form import from_json
from rollouts.evaluation.quality.assess import NotPassing
from rollouts.evaluation.quality.rules import MAX_MISSING_SHARE
from rollouts.evaluation.terms import Action, Decision, Reason, Status
from rollouts.models import Rollout, RolloutQuality
from rollouts.quality.entries import RolloutEvaluator, evaluators_of
from rollouts.states import Status as RolloutStatus
from rollouts.verdicts.quality.outcomes import units_with_outcome
from rollouts.verdicts.quality.users import Users

NO_OUTCOME = "no_outcome"
"""The reason why an outcome is missing: none has come yet."""

NOT_SAMPLED = (
    " No more answers are due for it: its online evaluation is paused or takes another sample, it is archived, or a"
    " later version of it scores now."
)


def quality_of(rollout: Rollout, figures: Mapping[str, Any]) -> dict[str, Any] | None:
    found = figures.get("quality")
    if found is None:
        return None
    evaluators = {one.title: one for one in evaluators_of(rollout)}
    counts = {
        **counts_by_arm(rollout.pk, [one.version_id for one in evaluators.values()], timezone.now()),
        **_counts_of_outcomes(rollout, evaluators, found["evaluators"]),
    }
    is_running = rollout.status == RolloutStatus.RUNNING
    sampled = matched_evaluations(rollout.project_id, rollout.config_id) if is_running else {}
    shown = []
    for one in found["evaluators"]:
        evaluator = evaluators[one["title"]]
        is_sampled = evaluator.is_outcome or (evaluator.evaluator_id, evaluator.version) in sampled
        tasks = {
            arm: _tasks(one["tasks"][arm], counts.get((evaluator.version_id, arm), TaskCounts()))
            for arm in (TARGET, BASELINE)
        }
        if not is_running or evaluator.label_share is None:
            tasks = {arm: {**of_arm, "labels_awaited": 0} for arm, of_arm in tasks.items()}
        warned = NOT_SAMPLED if is_running and not is_sampled else ""
        shown.append(
            {
                **one,
                "tasks": tasks,
                "is_sampled": is_sampled,
                "decides": _decides(one, figures),
                "explanation": one["explanation"] + _incomplete(one) + _awaited({"tasks": tasks}) + warned,
            }
        )
    return {**found, "goal": found.get("goal"), "evaluators": shown}


def _counts_of_outcomes(
    rollout: Rollout, evaluators: Mapping[str, RolloutEvaluator], judged: Iterable[Mapping[str, Any]]
) -> Mapping[tuple[UUID, str], TaskCounts]:
    """Returns as due what was allocated to each arm, as done what has an outcome. Raises the errors of the store."""
    outcomes = [one for one in judged if evaluators[one["title"]].is_outcome]
    if not outcomes:
        return {}
    units = units_by_arm(rollout.project_id, rollout.pk, *rollout.requests_between(timezone.now()))
    users = RolloutQuality.objects.values_list("users", flat=True).get(pk=rollout.pk) or {}
    weights = [stage.weight for stage in rollout.stages.all()]
    found: dict[tuple[UUID, str], TaskCounts] = {}
    for one in outcomes:
        known = users.get(one["title"])
        done = units_with_outcome(from_json(Users, known), weights) if known else {}
        for arm in (TARGET, BASELINE):
            number = done.get(arm, one["tasks"][arm]["due"])
            due = max(number, units.get(arm, 0))
            found[evaluators[one["title"]].version_id, arm] = TaskCounts(due, number, {NO_OUTCOME: due - number})
    return found


def explained(rollout: Rollout, figures: Mapping[str, Any], quality: Mapping[str, Any] | None) -> str:
    """Returns the sentence of the verdict with what only this moment knows of the evaluators that it waits for."""
    text: str = figures["explanation"]
    waits = figures["reason"] in (Reason.INCONCLUSIVE, Reason.QUALITY_INCONCLUSIVE)
    if quality is None or not waits or rollout.status != RolloutStatus.RUNNING:
        return text
    asked = [one for one in quality["evaluators"] if one["decides"]]
    if ended := [one["title"] for one in asked if not one["is_sampled"]]:
        return (
            f"The answers are not shown to be as good yet by {', '.join(ended)}, for which no more answers are due. It"
            " will not pass by waiting: let an online evaluation take a matched sample for this version of the"
            " evaluator again, or promote by hand."
        )
    labels = sum(labels_awaited(one) for one in asked)
    return f"{text} {labels:,} {'answers wait' if labels > 1 else 'answer waits'} for a label." if labels else text


def labels_awaited(one: Mapping[str, Any]) -> int:
    found: int = sum(of_arm["labels_awaited"] for of_arm in one["tasks"].values())
    return found


def _incomplete(one: Mapping[str, Any]) -> str:
    is_said = one["not_passing"] == NotPassing.MISSING_SCORES and None not in (one["target"], one["baseline"])
    if one["missing_share"] <= MAX_MISSING_SHARE or is_said:
        return ""
    what = "a score" if one["label_share"] is None else "a score or a label"
    return f" {one['pairs'] - one['complete_pairs']:,} of {one['pairs']:,} pairs lack {what}."


def _awaited(one: Mapping[str, Any]) -> str:
    labels = labels_awaited(one)
    if not labels:
        return ""
    return f" It waits for {labels:,} label{'s' if labels > 1 else ''} that people have to give."


def _tasks(judged: Mapping[str, int], counts: TaskCounts) -> dict[str, Any]:
    return {
        "due": counts.due,
        "done": counts.done,
        "missing": sum(counts.missing.values()),
        "missing_by_reason": dict(counts.missing),
        "judged": judged["due"],
        "judged_missing": judged["missing"],
        "labels_due": judged["labels_due"],
        "labelled": judged["labelled"],
        "labels_awaited": counts.labels_awaited,
    }


def _decides(one: Mapping[str, Any], figures: Mapping[str, Any]) -> bool:
    match figures["reason"]:
        case Reason.QUALITY_FAILING:
            holds = figures["decision"] != Decision.ROLL_BACK
            return bool(one["status"] == Status.FAILING and (holds or one["action"] == Action.ROLL_BACK))
        case Reason.QUALITY_UNSCORED:
            return bool(one["action"] != Action.IGNORE)
        case Reason.QUALITY_INCONCLUSIVE | Reason.INCONCLUSIVE:
            return one["title"] in figures["quality"]["required"]
        case _:
            return False
