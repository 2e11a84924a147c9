from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analytics.models.reviews import ReviewQueue, RubricKind
from core.errors import ValidationError

MAX_LABELS = 9
"""Labels have the keys 1 to 9."""

_MAX_WHOLE_STEPS = 10
_STEPS = 5


@dataclass(frozen=True, slots=True)
class Choice:
    key: str
    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Verdict:
    value: float
    label: str = ""


def choices_of(queue: ReviewQueue) -> list[Choice]:
    if queue.kind == RubricKind.BOOLEAN:
        return [Choice("y", 1.0, "Yes"), Choice("n", 0.0, "No")]
    if queue.kind == RubricKind.CATEGORY:
        return [Choice(str(place), float(place), label) for place, label in enumerate(queue.labels, 1)]
    steps = enumerate(_steps(*_bounds(queue)), 1)
    return [Choice(str(place % _MAX_WHOLE_STEPS), step, f"{step:g}") for place, step in steps]


def takes_any_number(queue: ReviewQueue) -> bool:
    """Whether a reviewer is likely to want values that have no button."""
    return queue.kind == RubricKind.NUMBER and not _has_whole_steps(*_bounds(queue))


def verdict_of(queue: ReviewQueue, value: float | bool | None, label: str) -> Verdict:
    if queue.kind == RubricKind.CATEGORY:
        if label not in queue.labels:
            raise ValidationError.of_field("score_label", f"Must be one of: {', '.join(queue.labels)}.")
        return Verdict(float(queue.labels.index(label) + 1), label)
    if label:
        raise ValidationError.of_field("score_label", "Only a rubric of categories has labels.")
    if value is None:
        raise ValidationError.of_field("score_value", "Must be given.")
    if queue.kind == RubricKind.BOOLEAN:
        if value not in (0, 1):
            raise ValidationError.of_field("score_value", "Must be 0 or 1.")
        return Verdict(float(value))
    lowest, highest = _bounds(queue)
    if isinstance(value, bool) or not lowest <= value <= highest:
        raise ValidationError.of_field("score_value", f"Must be a number from {lowest:g} to {highest:g}.")
    return Verdict(float(value))


def _bounds(queue: ReviewQueue) -> tuple[float, float]:
    return queue.minimum or 0.0, queue.maximum or 0.0


def _steps(lowest: float, highest: float) -> Sequence[float]:
    if _has_whole_steps(lowest, highest):
        return [float(step) for step in range(int(lowest), int(highest) + 1)]
    return [lowest + (highest - lowest) * step / (_STEPS - 1) for step in range(_STEPS)]


def _has_whole_steps(lowest: float, highest: float) -> bool:
    return lowest.is_integer() and highest.is_integer() and highest - lowest < _MAX_WHOLE_STEPS
