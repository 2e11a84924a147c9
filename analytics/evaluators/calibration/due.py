"""Which labelled answers a version of an evaluator is to score: each once, and its anchors again.

The anchors are the labelled answers whose ids have the lowest hashes. The judge scores them again every day, and when
another model has answered as the judge, so that flipped verdicts reveal a drift. Answers without a score are then
retried.

Labels expire as in a calibration: an evaluator that nobody labels for any longer costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from analytics.evaluators.calibration.labels import Judged, judged_of, labels_of, latest_model
from analytics.evaluators.calibration.states import LABELS_LAST
from analytics.evaluators.definitions import UserFeedback
from analytics.evaluators.selectors import KnownVersion, known_version
from analytics.models import SCORE_NAME_CHARACTERS, EvaluatorVersion, ReviewItem
from analytics.models.evaluators import EvaluatorState
from analytics.models.reviews import ItemState
from analytics.scores.services import NewScore, record_scores

ANCHORS = 50
ANCHORS_EVERY = timedelta(days=1)
_AFTER_A_CHANGE = timedelta(hours=1)
AT_ONCE = 100
"""So many answers without a score are tried at once."""

ACTOR = "calibration"


@dataclass(frozen=True, slots=True)
class Due:
    """The answers that a version is to score: for the first time, and again. A score of the latter replaces that of the
    last time, and leaves the first one as it is."""

    project_id: UUID
    version: KnownVersion
    first: Sequence[UUID]
    again: Sequence[UUID]


def claim_due(now: datetime) -> Due | None:
    for row in _labelled_versions(now):
        version = known_version(row)
        if not _can_score(version):
            continue
        due, values = _due_of(row, version, now)
        if due is not None and _claim(row, values):
            return due
    return None


def record(due: Due, scores: Mapping[UUID, NewScore]) -> None:
    """Records the scores by request, but for answers that were deleted meanwhile."""
    kept = ReviewItem.objects.filter(queue__project_id=due.project_id, request_id__in=list(scores))
    there = set(kept.values_list("request_id", flat=True))
    if there:
        found = [score for request_id, score in scores.items() if request_id in there]
        record_scores(project_id=due.project_id, scores=found, actor=ACTOR)


def _labelled_versions(now: datetime) -> QuerySet[EvaluatorVersion]:
    items = ReviewItem.objects.filter(queue__evaluator=OuterRef("evaluator"), state=ItemState.DONE)
    newest = EvaluatorVersion.objects.filter(evaluator=OuterRef("evaluator")).order_by("-number").values("pk")[:1]
    rows = EvaluatorVersion.objects.filter(Exists(items.filter(reviewed_at__gte=now - LABELS_LAST)))
    rows = rows.filter(evaluator__state=EvaluatorState.ACTIVE, pk=Subquery(newest))
    return rows.select_related("evaluator").order_by("pk")


def _can_score(version: KnownVersion) -> bool:
    can_score = version.definition.scores_alone and not isinstance(version.definition, UserFeedback)
    return can_score and len(version.title) <= SCORE_NAME_CHARACTERS


def _due_of(row: EvaluatorVersion, version: KnownVersion, now: datetime) -> tuple[Due | None, dict[str, Any]]:
    project_id = row.evaluator.project_id
    labels = sorted(labels_of(project_id, version), key=lambda label: label.labelled_at)
    judged = judged_of(project_id, version, [label.request_id for label in labels])
    again = _anchors([label.request_id for label in labels if label.request_id in judged], version)
    is_new_round = _is_new_round(row, version, [judged[key] for key in again], now)
    until = None if is_new_round else row.labels_scored_until
    waiting = [one for one in labels if one.request_id not in judged and (until is None or one.labelled_at > until)]
    first = waiting[:AT_ONCE]
    values: dict[str, Any] = {"labels_scored_until": first[-1].labelled_at if first else row.labels_scored_until}
    if is_new_round:
        values["anchors_judged_at"] = now
    due = Due(project_id, version, [label.request_id for label in first], again if is_new_round else [])
    return (due if due.first or due.again else None), values


def _anchors(request_ids: Sequence[UUID], version: KnownVersion) -> list[UUID]:
    """Rules have no anchors, since they do not drift."""
    if not version.definition.asks_a_model:
        return []
    return sorted(request_ids, key=lambda key: sha256(key.bytes).digest())[:ANCHORS]


def _is_new_round(row: EvaluatorVersion, version: KnownVersion, anchors: Sequence[Judged], now: datetime) -> bool:
    if row.anchors_judged_at is None or now - row.anchors_judged_at >= ANCHORS_EVERY:
        return True
    if not anchors or now - row.anchors_judged_at < _AFTER_A_CHANGE:
        return False
    newest = latest_model(row.evaluator.project_id, version)
    return bool(newest) and newest not in {one.latest.judge_model for one in anchors}


def _claim(row: EvaluatorVersion, values: Mapping[str, Any]) -> bool:
    """Returns False if another worker was quicker. A claim of a worker that dies waits for the next round."""
    as_read = {name: getattr(row, name) for name in ("labels_scored_until", "anchors_judged_at")}
    rows = EvaluatorVersion.objects.filter(pk=row.pk, **as_read)
    return bool(rows.update(**values))
