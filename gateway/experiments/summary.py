"""Which candidate won an item, and how certain a share is. Arithmetic only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from gateway.tables.experiment import TIE

# Grades of a judge that differ by less are no reason to prefer an answer.
MIN_SCORE_DIFFERENCE = 1.0
_Z = 1.959964  # 95 %


@dataclass(frozen=True, slots=True)
class AnswerFigures:
    """How one answer stands. `score` is None when it is not known."""

    label: str
    is_done: bool
    failed: bool
    score: float | None


@dataclass(frozen=True, slots=True)
class ItemFigures:
    """The answers to one item, and the label that a person picked, `tie`, or an empty text."""

    answers: Sequence[AnswerFigures]
    picked: str = ""


def verdict(figures: ItemFigures) -> str:
    """Returns the label of the winner, `tie`, or an empty text: the one that a person picked, or else the one that the
    judge's scores favour, by the mean of its repeats. An answer that failed loses to one that did not."""
    if figures.picked:
        return figures.picked
    if not figures.answers or not all(answer.is_done for answer in figures.answers):
        return ""
    good = [answer for answer in figures.answers if not answer.failed]
    by_label: dict[str, list[float]] = {}
    for answer in good:
        if answer.score is None:
            return ""
        by_label.setdefault(answer.label, []).append(answer.score)
    if not by_label:
        return ""
    scored = sorted((fmean(scores), label) for label, scores in by_label.items())
    best, label = scored[-1]
    if len(scored) > 1 and best - scored[-2][0] < MIN_SCORE_DIFFERENCE:
        return TIE
    return label


def wilson(successes: float, count: int) -> tuple[float, float]:
    """Returns Wilson's 95 % interval of a share."""
    share = successes / count
    middle = share + _Z**2 / (2 * count)
    half = _Z * sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    scale = 1 + _Z**2 / count
    return max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)
