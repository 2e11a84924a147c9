"""What a threshold may be, and how a project writes its own as one line."""

from __future__ import annotations

from rollouts.evaluation.policy import ALPHA, RATES, Metric, Threshold, usual_threshold

RATE_POINTS = (0.001, 0.5)
"""The least and the most points of a threshold: what differs by less takes a hundred thousand requests to see."""
FACTORS = (1.05, 10.0)
"""The least and the largest factor: latencies and costs are counted by steps of 2.3 %."""

_USUAL = "-"
_FORM = "must be a metric, what it may fail from and what it passes below, as `unanswered 0.001 0.002`"


def margin_problem(metric: Metric, own: Threshold) -> str:
    """Returns why a margin cannot be, beside the difference from which on the metric may fail; "" if it can."""
    usual = usual_threshold(metric)
    if usual.margin is None:
        return "" if own.margin is None else "Does not have to pass."
    fail_from = usual.fail_from if own.fail_from is None else own.fail_from
    margin = usual.margin if own.margin is None else own.margin
    if fail_from is None or margin >= fail_from:
        return ""
    return f"Must be at least its fail_from, {fail_from:g}: between the two nothing is ever decided."


def threshold_from(line: str) -> tuple[Metric, Threshold]:
    """Raises ValueError, with a sentence that says what is wrong, for a line of another form."""
    words = line.split()
    if len(words) != 3 or words[0] not in {metric.value for metric in ALPHA}:
        raise ValueError(f"{line}: {_FORM}. A metric is one of {', '.join(metric.value for metric in ALPHA)}.")
    metric = Metric(words[0])
    least, most = RATE_POINTS if metric in RATES else FACTORS
    try:
        fail_from, margin = (None if word == _USUAL else float(word) for word in words[1:])
    except ValueError:
        raise ValueError(f"{line}: {_FORM}; `{_USUAL}` stands for what is usual.") from None
    if any(one is not None and not least <= one <= most for one in (fail_from, margin)):
        raise ValueError(f"{line}: each is from {least:g} to {most:g}.")
    own = Threshold(fail_from, margin)
    if problem := margin_problem(metric, own):
        raise ValueError(f"{line}: the second {problem[0].lower()}{problem[1:]}")
    return metric, own
