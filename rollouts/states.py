"""The transition rules of rollouts: the statuses of a rollout, its transitions and its stages. Pure.

pending ── start ──► running ◄── start / pause ──► paused
running, paused ── promote ──► the next stage, or completed after the last
pending, running, paused ── roll_back ──► rolled_back
pending, running, paused ── complete ──► completed
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

MAX_STAGES = 50
MAX_MINUTES = 525_600  # A stage lasts at most a year.
MAX_REQUESTS = 1_000_000_000


class Status(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    ROLLED_BACK = "rolled_back"

    @property
    def is_terminal(self) -> bool:
        return self in TERMINAL


TERMINAL = frozenset({Status.COMPLETED, Status.ROLLED_BACK})
# An active rollout decides which version its config serves, so a config has at most one.
ACTIVE = frozenset(Status) - TERMINAL


class Transition(StrEnum):
    START = "start"
    PAUSE = "pause"
    PROMOTE = "promote"
    ROLL_BACK = "roll_back"
    COMPLETE = "complete"


ALLOWED: Mapping[Transition, frozenset[Status]] = {
    Transition.START: frozenset({Status.PENDING, Status.PAUSED}),
    Transition.PAUSE: frozenset({Status.RUNNING}),
    Transition.PROMOTE: frozenset({Status.RUNNING, Status.PAUSED}),
    Transition.ROLL_BACK: ACTIVE,
    Transition.COMPLETE: ACTIVE,
}
_RESULT: Mapping[Transition, Status] = {
    Transition.START: Status.RUNNING,
    Transition.PAUSE: Status.PAUSED,
    Transition.ROLL_BACK: Status.ROLLED_BACK,
    Transition.COMPLETE: Status.COMPLETED,
}


class TransitionError(Exception):
    """The status does not allow the transition; `str` is a sentence for the client."""


class Position(NamedTuple):
    status: Status
    stage: int


def after(transition: Transition, position: Position, stages: int) -> Position:
    """Returns the position after the transition, in a rollout of `stages` stages. Raises TransitionError.

    A paused rollout that is promoted stays paused, at the next stage: the person who paused it decides when it serves
    again.
    """
    status, stage = position
    if status not in ALLOWED[transition]:
        allowed = ", ".join(sorted(ALLOWED[transition]))
        verb = transition.value.replace("_", " ")
        raise TransitionError(f"Cannot {verb} a rollout that is {status.value}: it has to be {allowed}.")
    if transition is Transition.PROMOTE:
        return Position(status, stage + 1) if stage < stages else Position(Status.COMPLETED, stage)
    if transition is Transition.START:
        return Position(Status.RUNNING, max(stage, 1))
    return Position(_RESULT[transition], stage)


class Stage(NamedTuple):
    """`weight` percent of the traffic; promoted automatically only after its minutes and target requests. Latency and
    cost are not judged in the first `settle_minutes`."""

    weight: int
    min_duration_minutes: int
    min_requests: int
    settle_minutes: int = 0


SETTLE_MINUTES = 4
"""The time that a target is given to warm up when more traffic comes to it: three minutes and one to spare. Longer
costs requests until harm is found: see docs/rollouts.md."""

DEFAULT_STAGES: tuple[Stage, ...] = (
    Stage(1, 30, 20, SETTLE_MINUTES),
    Stage(5, 30, 50, SETTLE_MINUTES),
    Stage(10, 60, 100, SETTLE_MINUTES),
    Stage(25, 60, 200, SETTLE_MINUTES),
    Stage(50, 120, 400, SETTLE_MINUTES),
    Stage(75, 120, 400, SETTLE_MINUTES),
    Stage(100, 60, 0, 0),
)
TEST_STAGES: tuple[Stage, ...] = (Stage(50, 24 * 60, 400, SETTLE_MINUTES),)
"""The stages of an A/B test: a day, because users of the morning may be other users."""
_SETTLED_SHARE = 6


class StageError(ValueError):
    """`field` is the path of the value, as `stages[1].weight`; `message` explains it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def stages_from(items: Sequence[Mapping[str, object]] | None) -> tuple[Stage, ...]:
    """Returns the stages of a request body, complete; the default stages for an empty body. Raises StageError.

    Weights rise strictly from 1 to at most 100. An omitted minimum is that of the last default stage up to the weight;
    so are omitted `settle_minutes`, but at most a sixth of the stage's minutes.
    """
    if items is None:
        return DEFAULT_STAGES
    if not 1 <= len(items) <= MAX_STAGES:
        raise StageError("stages", f"Expected 1 to {MAX_STAGES} stages.")
    stages: list[Stage] = []
    for index, item in enumerate(items):
        stage = _stage_from(f"stages[{index}]", item)
        if stages and stage.weight <= stages[-1].weight:
            raise StageError(f"stages[{index}].weight", f"Weights rise: expected more than {stages[-1].weight}.")
        stages.append(stage)
    return tuple(stages)


def _stage_from(path: str, item: Mapping[str, object]) -> Stage:
    unknown = sorted(set(item) - set(Stage._fields))
    if unknown:
        raise StageError(f"{path}.{unknown[0]}", "Unknown field.")
    weight = _integer(f"{path}.weight", item.get("weight"), 1, 100)
    usual = max((stage for stage in DEFAULT_STAGES if stage.weight <= weight), key=lambda stage: stage.weight)

    def given(name: str, usually: int, maximum: int, meaning: str = "") -> int:
        value = item.get(name)
        return usually if value is None else _integer(f"{path}.{name}", value, 0, maximum, meaning)

    minutes = given("min_duration_minutes", usual.min_duration_minutes, MAX_MINUTES)
    return Stage(
        weight,
        minutes,
        given("min_requests", usual.min_requests, MAX_REQUESTS),
        given(
            "settle_minutes",
            min(usual.settle_minutes, minutes // _SETTLED_SHARE),
            minutes,
            ", the min_duration_minutes of the stage",
        ),
    )


def _integer(field: str, value: object, minimum: int, maximum: int, meaning: str = "") -> int:
    """`meaning` says, after the maximum, what it is."""
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise StageError(field, f"Expected an integer from {minimum} to {maximum}{meaning}.")
    return value
