from __future__ import annotations

from collections.abc import Iterator

from analytics.evaluators.calibration.states import State as Calibrated
from rollouts.evaluation import Action
from rollouts.models import Rollout
from rollouts.quality.entries import QualityEntry, RolloutEvaluator, entries_of, evaluators_of


def warnings_of(rollout: Rollout) -> list[str]:
    """Returns where evaluators do less than was asked for, as sentences; nothing before the start."""
    pairs = zip(entries_of(rollout), evaluators_of(rollout), strict=False)
    return [text for entry, evaluator in pairs for text in _warnings(entry, evaluator)]


def _warnings(entry: QualityEntry, evaluator: RolloutEvaluator) -> Iterator[str]:
    judge = f"the judge of {evaluator.title} {_WHY.get(evaluator.calibration, 'is not calibrated')}"
    if entry.action is Action.ROLL_BACK and evaluator.action is Action.HOLD:
        yield f"Where {evaluator.title} finds the target worse, the rollout holds and is not rolled back: {judge}."
    if evaluator.required and evaluator.scale is None:
        yield (
            f"{evaluator.title} is required and cannot pass in this rollout, because {judge}. From 50 % on a person has"
            " to promote it. Calibrate the judge by labels, or give its online evaluation a label_share, before you"
            " start one."
        )
    if evaluator.is_rule and evaluator.label_share is not None:
        yield f"{evaluator.title} is a rule, which is right by definition, and the rollout waits for labels of people."


_WHY = {
    Calibrated.STALE.value: "has no labels of its present model or of the last 30 days",
    Calibrated.DRIFTED.value: "judges otherwise than it did",
}
