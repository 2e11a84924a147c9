"""Reads what people and an evaluator said about the same answers.

A label is the score of an item in a review queue that names the evaluator. If the evaluator scored an answer several
times the latest score counts, as in `analytics.reviews.comparison`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.evaluators.calibration.statistics import Group, Verdicts
from analytics.evaluators.own_scores import scores_of
from analytics.evaluators.selectors import KnownVersion
from analytics.models import ReviewItem, Score
from analytics.models.reviews import FIRST_OPINION, ItemState
from analytics.scores.sync.requests import ScoredRequest, find_requests
from core.chunks import chunks

MAX_LABELS = 10_000
"""So many of the newest labels count, so that a calibration takes a bounded time."""

_BASELINE = "baseline"
_NO_UUID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Label:
    request_id: UUID
    is_good: bool
    labelled_at: datetime


@dataclass(frozen=True, slots=True)
class Judged:
    first: Score
    latest: Score


def labels_of(project_id: UUID, version: KnownVersion) -> list[Label]:
    """Returns the newest label of each request; the version's `good_from` decides which labels are good.

    Second opinions are left out: they compare people with each other.
    """
    items = (
        ReviewItem.objects.filter(queue__project_id=project_id, queue__evaluator_id=version.evaluator_id)
        .filter(state=ItemState.DONE, score_id__isnull=False, reviewed_at__isnull=False, opinion=FIRST_OPINION)
        .select_related("queue")
        .order_by("-reviewed_at", "-id")[:MAX_LABELS]
    )
    # The newest come last, so that they replace older ones of the same request.
    done = list(items)[::-1]
    values: dict[UUID, float] = {}
    for keys in chunks([item.score_id for item in done if item.score_id is not None]):
        own = Score.objects.for_project(project_id).filter(pk__in=keys)
        values.update(own.values_list("pk", "score_value"))
    found: dict[UUID, Label] = {}
    for item in done:
        if item.score_id in values and item.reviewed_at is not None:
            is_good = item.queue.scaled(values[item.score_id]) >= version.good_from
            found[item.request_id] = Label(item.request_id, is_good, item.reviewed_at)
    return list(found.values())


def judged_of(project_id: UUID, version: KnownVersion, request_ids: Sequence[UUID]) -> Mapping[UUID, Judged]:
    found: dict[UUID, Judged] = {}
    for keys in chunks(request_ids):
        own = scores_of(project_id, version).filter(request_id__in=[str(key) for key in keys])
        # Their reasons are texts of up to 10,000 characters.
        for score in own.order_by("created_at", "id").defer("reason"):
            key = UUID(score.request_id)
            found[key] = Judged(found[key].first if key in found else score, score)
    return found


def latest_model(project_id: UUID, version: KnownVersion) -> str:
    """Returns the model that gave the newest score, even without a label; "" if unknown."""
    if not version.definition.asks_a_model:
        return ""
    # In the order of an index: online evaluations give a version hundreds of thousands of scores.
    newest = scores_of(project_id, version).exclude(judge_model="").order_by("-created_at")
    return newest.values_list("judge_model", flat=True).first() or ""


def verdicts_of(
    project_id: UUID, version: KnownVersion, labels: Sequence[Label]
) -> list[tuple[Label, Judged, Verdicts]]:
    """Returns the labels whose answers the version judged, with both verdicts, the prompt version and the arm.

    Raises the errors of the store.
    """
    judged = judged_of(project_id, version, [label.request_id for label in labels])
    both = [label for label in labels if label.request_id in judged]
    requests: dict[UUID, ScoredRequest] = {}
    for keys in chunks([label.request_id for label in both]):
        requests.update(find_requests(project_id, keys))
    return [
        (label, judged[label.request_id], _verdicts(version, label, judged[label.request_id], requests))
        for label in both
    ]


def is_good(version: KnownVersion, score: Score) -> bool:
    return score.score_value >= version.good_from


def _verdicts(version: KnownVersion, label: Label, judged: Judged, requests: Mapping[UUID, ScoredRequest]) -> Verdicts:
    request = requests.get(label.request_id)
    return Verdicts(
        is_good(version, judged.latest),
        label.is_good,
        version=_version_of(request) if request is not None else None,
        arm=_arm_of(request) if request is not None else None,
        model=request.model if request is not None else "",
    )


def _version_of(request: ScoredRequest) -> Group | None:
    if request.prompt_config_id == _NO_UUID:
        return None
    return Group(request.prompt_config_id, request.prompt_version, str(request.prompt_version))


def _arm_of(request: ScoredRequest) -> Group | None:
    if request.rollout_id == _NO_UUID or not request.variant:
        return None
    return Group(request.rollout_id, int(request.variant != _BASELINE), request.variant)
