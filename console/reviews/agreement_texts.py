from __future__ import annotations

from collections.abc import Iterator

from analytics.reviews.wire import ReviewAgreement, ReviewAgreementEntry, ReviewEstimate, ReviewPeopleAgreement
from core.ui.formats import number, share


def agreement_lines(agreement: ReviewAgreement) -> Iterator[str]:
    for entry in agreement["evaluators"]:
        yield f"{entry['evaluator_type']}: {', '.join(figures_of(entry))}"


def figures_of(entry: ReviewAgreementEntry | ReviewPeopleAgreement) -> Iterator[str]:
    if entry["correlation"]:
        yield f"correlation {_with_interval(entry['correlation'])}"
    elif entry["equal"]:
        equal = entry["equal"]
        yield f"{share(equal['value'])} equal ({share(equal['low'])} to {share(equal['high'])})"
    if entry["kappa"]:
        yield f"kappa {_with_interval(entry['kappa'])}"
    if entry["mean_difference"] is not None:
        yield f"apart by {number(round(entry['mean_difference'], 2))} on average"
    yield f"n = {entry['compared']}"


def _with_interval(found: ReviewEstimate) -> str:
    if found["low"] is None or found["high"] is None:
        return f"{found['value']:.2f}"
    return f"{found['value']:.2f} ({found['low']:.2f} to {found['high']:.2f})"
