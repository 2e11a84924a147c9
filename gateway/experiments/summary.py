"""Sums up the answers of an experiment. Arithmetic only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import sqrt
from statistics import fmean

from gateway.experiments.shapes import ExperimentFigures, Label
from gateway.tables.experiment import TIE

# Grades of a judge that differ by less are no reason to prefer an answer.
MIN_SCORE_DIFFERENCE = 1.0
_Z = 1.959964  # 95 %


@dataclass(frozen=True, slots=True)
class AnswerFigures:
    """The figures of one answer. `cost_usd` and `score` are None when they are not known."""

    label: str
    is_done: bool
    failed: bool
    cost_usd: Decimal | None
    latency_ms: int | None
    total_tokens: int
    score: float | None


@dataclass(frozen=True, slots=True)
class ItemFigures:
    """The answers to one item, and the label that a person picked, `tie`, or an empty text."""

    answers: Sequence[AnswerFigures]
    picked: str = ""


def verdict(figures: ItemFigures) -> str:
    """Returns the label of the winner, `tie`, or an empty text: the one that a person picked, or else the one that the
    judge's scores favour. An answer that failed loses to one that did not."""
    if figures.picked:
        return figures.picked
    if not figures.answers or not all(answer.is_done for answer in figures.answers):
        return ""
    good = [answer for answer in figures.answers if not answer.failed]
    scored = sorted((answer.score, answer.label) for answer in good if answer.score is not None)
    if not scored or len(scored) < len(good):
        return ""
    best, label = scored[-1]
    if len(scored) > 1 and best - scored[-2][0] < MIN_SCORE_DIFFERENCE:
        return TIE
    return label


def summarize(labels: Sequence[Label], items: Sequence[ItemFigures]) -> list[ExperimentFigures]:
    """Returns the figures of each candidate. Means are None without a value. Of the `compared` items, which have a
    winner or a tie, it won `wins`; `win_rate` counts ties as half, with the bounds of its 95 % interval."""
    verdicts = [found for one in items if (found := verdict(one))]
    by_label: Mapping[Label, list[AnswerFigures]] = {
        label: [answer for one in items for answer in one.answers if answer.label == label] for label in labels
    }
    return [_summary(label, by_label[label], verdicts) for label in labels]


def _summary(label: Label, answers: Sequence[AnswerFigures], verdicts: Sequence[str]) -> ExperimentFigures:
    good = [answer for answer in answers if answer.is_done and not answer.failed]
    costs = [answer.cost_usd for answer in answers if answer.cost_usd is not None]
    latencies = [answer.latency_ms for answer in good if answer.latency_ms is not None]
    scores = [answer.score for answer in good if answer.score is not None]
    wins, ties, compared = verdicts.count(label), verdicts.count(TIE), len(verdicts)
    low, high = wilson(wins + ties / 2, compared) if compared else (None, None)
    return ExperimentFigures(
        label=label,
        answered=len(good),
        failed=sum(answer.is_done and answer.failed for answer in answers),
        pending=sum(not answer.is_done for answer in answers),
        total_cost_usd=float(sum(costs)),
        mean_cost_usd=float(sum(costs) / len(costs)) if costs else None,
        mean_latency_ms=fmean(latencies) if latencies else None,
        mean_tokens=fmean(answer.total_tokens for answer in good) if good else None,
        mean_score=fmean(scores) if scores else None,
        wins=wins,
        ties=ties,
        compared=compared,
        win_rate=(wins + ties / 2) / compared if compared else None,
        win_rate_low=low,
        win_rate_high=high,
    )


def wilson(successes: float, count: int) -> tuple[float, float]:
    """Returns Wilson's 95 % interval of a share."""
    share = successes / count
    middle = share + _Z**2 / (2 * count)
    half = _Z * sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    scale = 1 + _Z**2 / count
    return max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)
