"""The scores of answers in the verdict of a rollout: pure statistics, without any framework.

`initial_quality` begins, `advance_quality` adds every minute whose tasks have all ended, and `assess_quality` says
where the evaluators stand. States and minutes are stored by `to_json` and `from_json` of `rollouts.evaluation`;
`replay_quality` repeats any of them.
"""

from rollouts.evaluation.quality.advance import advance_quality, replay_quality
from rollouts.evaluation.quality.assess import QualityAssessment, assess_quality
from rollouts.evaluation.quality.counts import ArmTasks, EvaluatorTasks, QualityMinute, Task
from rollouts.evaluation.quality.rules import Basis, Evaluator
from rollouts.evaluation.quality.state import QualityState, initial_quality

__all__ = [
    "ArmTasks",
    "Basis",
    "Evaluator",
    "EvaluatorTasks",
    "QualityAssessment",
    "QualityMinute",
    "QualityState",
    "Task",
    "advance_quality",
    "assess_quality",
    "initial_quality",
    "replay_quality",
]
