from __future__ import annotations

import logging
from datetime import datetime

from django.utils import timezone

from analytics.errors import AnalyticsUnavailableError
from analytics.evaluators.calibration.due import ACTOR, claim_due, record
from analytics.evaluators.own_scores import new_score
from gateway.evaluations.dry_run import try_evaluator
from gateway.worker.recording import background_turn

logger = logging.getLogger("gateway.evaluations")


def score_labelled(now: datetime | None = None) -> bool:
    """Scores what is due for one version of an evaluator (`analytics.evaluators.calibration.due`). Returns whether
    anything was due, so that more may be. The next round retries answers without a score."""
    try:
        with background_turn() as may_begin:
            due = claim_due(now or timezone.now()) if may_begin else None
            if due is None:
                return False
            version = due.version
            tried = try_evaluator(
                project_id=due.project_id,
                definition=version.definition,
                request_ids=[*due.first, *due.again],
                actor=ACTOR,
            )
    except AnalyticsUnavailableError:
        logger.warning("labels.postponed")
        return False
    scored = {
        request_id: new_score(
            version,
            request_id,
            found.score,
            kind="anchor" if request_id in due.again else "label",
            reason=found.reason,
            judge_model=found.judge_model,
        )
        for request_id, found in tried.items()
        if found.score is not None
    }
    record(due, scored)
    logger.info("labels.scored evaluator_id=%s tried=%d scored=%d", version.evaluator_id, len(tried), len(scored))
    return True
