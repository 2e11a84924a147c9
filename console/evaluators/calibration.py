from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.utils import timezone

from analytics.agreement import Estimate
from analytics.evaluators.calibration.calibrate import Calibration, calibrate
from analytics.evaluators.calibration.states import (
    MIN_KAPPA,
    MIN_LABELS,
    MIN_LABELS_OF_EACH,
    Missing,
    State,
)
from analytics.evaluators.selectors import KnownVersion
from analytics.reviews.due_labels import count_free_labels
from core.roles import Right
from core.ui.formats import share
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.panels import Panel

_MARKS = {State.CALIBRATED: "good", State.UNCALIBRATED: "neutral", State.STALE: "warn", State.DRIFTED: "bad"}
_VERDICTS = {
    State.CALIBRATED: "Trusted: its scores may decide a rollout.",
    State.UNCALIBRATED: "Trusted: not yet.",
    State.STALE: "Trusted once: its labels are too old.",
    State.DRIFTED: "No longer trusted: its verdicts changed.",
}
# What each requirement is called, and what it takes.
_REQUIREMENTS = {
    Missing.LABELS: ("Enough labels", f"At least {MIN_LABELS} answers that it scored are labelled by people."),
    Missing.GROUPS: ("Both versions seen", f"Each of two versions or arms has {MIN_LABELS_OF_EACH} labels."),
    Missing.KAPPA: ("Agrees with people", f"The lower limit of Cohen's kappa is at least {MIN_KAPPA}."),
    Missing.DIFFERENTIAL_BIAS: ("Fair to both versions", "Its bias is alike in both, within 10 points for certain."),
    Missing.RECENT_LABELS: ("Labels are recent", "The newest label is from the last 30 days."),
    Missing.JUDGE_MODEL: ("One judge model", "The model that judges now is the one whose scores were labelled."),
    Missing.STEADY_VERDICTS: ("Steady verdicts", "Answers that are judged again get the same verdicts."),
}


@dataclass(frozen=True, slots=True)
class Requirement:
    name: str
    sentence: str
    is_met: bool


def calibration_panel(visit: Visit, version: KnownVersion) -> Panel:
    load = partial(_shown, visit, version)
    return Panel("calibration", "Calibration", "evaluators/calibration.html", load)


def _shown(visit: Visit, version: KnownVersion) -> Mapping[str, Any]:
    found = calibrate(visit.project.pk, version.evaluator_id, version.number)
    standing = found.standing
    return {
        "labelled": found.labelled,
        "score_name": version.title,
        "compared": found.facts.confusion.answers,
        "mark": status(standing.state.value, _MARKS[standing.state]),
        "verdict": _VERDICTS[standing.state],
        "requirements": [Requirement(*words, one not in standing.missing) for one, words in _REQUIREMENTS.items()],
        "figures": list(_figures(found)),
        "wanted": MIN_LABELS,
        "families": ", ".join(found.shared_families),
        "labels_address": _labels_address(visit, version),
        "queue_address": visit.link("reviews", evaluator_id=str(version.evaluator_id)) if visit.may(Right.EDIT) else "",
    }


def _labels_address(visit: Visit, version: KnownVersion) -> str:
    if version.evaluator_id not in count_free_labels(visit.project.pk, timezone.now()):
        return ""
    return visit.link_if_there("review_labels", evaluator_id=str(version.evaluator_id), count="20")


def _figures(found: Calibration) -> Iterator[tuple[str, str]]:
    confusion = found.facts.confusion
    yield "Good answers that it calls good", _share(confusion.sensitivity)
    yield "Bad answers that it calls bad", _share(confusion.specificity)
    yield "How much of a true difference it shows", _share(confusion.informedness)
    kappa = confusion.kappa
    if kappa is not None and kappa.low is not None and kappa.high is not None:
        yield "Cohen's kappa", f"{kappa.value:.2f} ({kappa.low:.2f} to {kappa.high:.2f})"
    yield "Calls good, less what people call good", _points(confusion.bias)
    for name, difference in (("versions", found.between_versions), ("arms", found.between_arms)):
        if difference is not None:
            pair = f"{difference.first.name} and {difference.second.name}"
            yield f"The same between the {name} {pair}", _points(difference.bias)


def _share(found: Estimate | None) -> str:
    return "none yet" if found is None else f"{share(found.value)} ({share(found.low)} to {share(found.high)})"


def _points(found: Estimate | None) -> str:
    if found is None or found.low is None or found.high is None:
        return "none yet"
    return f"{found.value * 100:+.1f} points ({found.low * 100:+.1f} to {found.high * 100:+.1f})"
