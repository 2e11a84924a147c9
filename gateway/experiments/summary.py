"""Which candidate won an item."""

from __future__ import annotations

from statistics import fmean

from gateway.tables.experiment import LABELS, TIE, AnswerState, ExperimentItem

# Grades of a judge that differ by less are no reason to prefer an answer.
MIN_SCORE_DIFFERENCE = 1.0


def verdict(item: ExperimentItem) -> str:
    """Returns the label of the winner, `tie`, or an empty text: the one that a person picked, or else the one that the
    judge's scores favour, by the mean of its repeats. An answer that failed loses to one that did not."""
    answers = list(item.answers.all())
    if item.winner or not all(answer.state == AnswerState.DONE for answer in answers):
        return item.winner
    by_label: dict[str, list[float]] = {}
    for answer in answers:
        if not answer.error_code:
            if answer.score is None:
                return ""
            by_label.setdefault(LABELS[answer.candidate], []).append(answer.score)
    if not by_label:
        return ""
    scored = sorted((fmean(scores), label) for label, scores in by_label.items())
    best, label = scored[-1]
    if len(scored) > 1 and best - scored[-2][0] < MIN_SCORE_DIFFERENCE:
        return TIE
    return label
