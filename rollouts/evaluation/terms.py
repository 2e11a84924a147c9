from __future__ import annotations

from enum import StrEnum


class Action(StrEnum):
    """The action of an automatic rollout when a metric fails. An ignored metric is shown and decides nothing."""

    ROLL_BACK = "roll_back"
    HOLD = "hold"
    IGNORE = "ignore"


class Status(StrEnum):
    PASSING = "passing"
    FAILING = "failing"
    INCONCLUSIVE = "inconclusive"


class Decision(StrEnum):
    PROMOTE = "promote"
    ROLL_BACK = "roll_back"
    WAIT = "wait"


class Reason(StrEnum):
    METRIC_FAILING = "metric_failing"
    MINIMUM_UNANSWERED = "minimum_unanswered"
    MINIMUM_DURATION = "minimum_duration"
    MINIMUM_REQUESTS = "minimum_requests"
    USERS_UNDECIDED = "users_undecided"
    NO_COMPARISON = "no_comparison"
    SAMPLE_RATIO = "sample_ratio"
    WORSE_FOR_ALL = "worse_for_all"
    INCONCLUSIVE = "inconclusive"
    QUALITY_FAILING = "quality_failing"
    QUALITY_UNSCORED = "quality_unscored"
    QUALITY_INCONCLUSIVE = "quality_inconclusive"
    GOAL_BETTER = "goal_better"
    GOAL_NOT_BETTER = "goal_not_better"
    GOAL_UNDECIDED = "goal_undecided"
    NO_FAILURE = "no_failure"
    PASSING = "passing"
    NO_CONTROL = "no_control"


HOLDING = frozenset(
    {
        Reason.METRIC_FAILING,
        Reason.MINIMUM_UNANSWERED,
        Reason.USERS_UNDECIDED,
        Reason.NO_COMPARISON,
        Reason.SAMPLE_RATIO,
        Reason.WORSE_FOR_ALL,
        Reason.QUALITY_FAILING,
        Reason.QUALITY_UNSCORED,
    }
)
"""The reasons for which a rollout waits although nothing is missing."""
