from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from analytics.scores.services import record_scores
from analytics.serializers.scores import MAX_BATCH, ScoreItemSerializer, new_scores
from core.errors import ApplicationError

logger = logging.getLogger("analytics.telemetry")


def record_exported(project_id: UUID, actor: str, scores: Sequence[dict[str, Any]], **_: Any) -> None:
    """Records what the events of an export say, without those that no request could record. Raises the errors of the
    store."""
    given = [ScoreItemSerializer(data=one) for one in scores]
    valid = [one.validated_data for one in given if one.is_valid()]
    for start in range(0, len(valid), MAX_BATCH):
        items = {f"{place}.": item for place, item in enumerate(valid[start : start + MAX_BATCH])}
        found = new_scores(project_id, items, refuses=False)
        # Of two results for the same session the last one counts.
        once = {one.score_id: one for one in found}
        try:
            record_scores(project_id=project_id, scores=list(once.values()), actor=actor)
        except ApplicationError as error:
            logger.warning("results.not_recorded project_id=%s error=%s", project_id, error.code)
    if len(valid) < len(scores):
        logger.warning("results.invalid project_id=%s count=%d", project_id, len(scores) - len(valid))
