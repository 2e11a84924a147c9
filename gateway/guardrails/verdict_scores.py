"""Verdicts of guardrails as evaluation scores: one `guardrail.<name>` per request and guardrail, recorded once."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from uuid import UUID

import msgspec
from django.utils import timezone

from analytics.errors import AnalyticsLimitError
from analytics.models import ScoreType
from analytics.queries.unscored import Unscored, unscored_requests
from analytics.scores.services import NewScore, record_scores
from gateway.guardrails.verdicts import VERDICTS, Guardrail, GuardrailAction, GuardrailVerdict, decode_verdicts
from gateway.models import GatewaySettings

logger = logging.getLogger("gateway.guardrails")

EVALUATOR = "guardrail"
_MAX_SCORE = 100
# The requests of one hour fit into the memory that a query may use.
_WINDOW = timedelta(hours=1)


def is_any_guarded(*, back: timedelta) -> bool:
    return any(True for _ in _guarded_projects(since_days=back.days + 1))


def score_verdicts(*, back: timedelta) -> int:
    """Scores the verdicts on requests of the last `back` that have no scores yet; returns their number.

    The request log is the queue: a later run finds the requests that one misses. Repeatable. Raises
    AnalyticsUnavailableError.
    """
    made = 0
    for project_id in list(_guarded_projects(since_days=back.days + 1)):
        try:
            made += _score_project(project_id, back)
        except AnalyticsLimitError:
            # One project with too many requests must not delay the other projects.
            logger.warning("verdicts.postponed project_id=%s", project_id)
    if made:
        logger.info("verdicts.scored scores=%d", made)
    return made


def _score_project(project_id: UUID, back: timedelta) -> int:
    made, end = 0, timezone.now()
    first = end - back
    while end > first:
        start = max(end - _WINDOW, first)
        for rows in unscored_requests(project_id, VERDICTS, EVALUATOR, start=start, end=end):
            made += record_verdicts(project_id, dict(_read(rows)))
        end = start
    return made


def _guarded_projects(*, since_days: int) -> Iterator[UUID]:
    """Includes projects with recently changed settings, which may have had guardrails."""
    changed = timezone.now() - timedelta(days=since_days)
    for row in GatewaySettings.objects.iterator():
        if row.settings.guardrails.is_on or row.updated_at >= changed:
            yield row.project_id


def _read(rows: Iterable[Unscored]) -> Iterator[tuple[str, list[GuardrailVerdict]]]:
    for row in rows:
        try:
            yield str(row.request_id), decode_verdicts(row.value)
        except msgspec.DecodeError:
            # A worker of a later version may have written verdicts of another shape.
            logger.warning("verdicts.unreadable request_id=%s", row.request_id)


def record_verdicts(project_id: UUID, verdicts: Mapping[str, Iterable[GuardrailVerdict]]) -> int:
    """Records verdicts by request id as scores; returns their number. Repeating it changes nothing."""
    scores = [score for request_id, found in verdicts.items() for score in scores_of(request_id, found)]
    if scores:
        record_scores(project_id=project_id, scores=scores, actor=EVALUATOR)
    return len(scores)


def scores_of(request_id: str, verdicts: Iterable[GuardrailVerdict]) -> list[NewScore]:
    by_guardrail: dict[str, list[GuardrailVerdict]] = {}
    for verdict in verdicts:
        if verdict.action is not GuardrailAction.SKIPPED:
            by_guardrail.setdefault(verdict.guardrail, []).append(verdict)
    return [_score(request_id, name, found) for name, found in by_guardrail.items()]


def _score(request_id: str, name: str, verdicts: list[GuardrailVerdict]) -> NewScore:
    last = verdicts[-1]
    value, kind = 1.0, ScoreType.BOOLEAN
    if name == Guardrail.LOW_QUALITY:
        # When a request has two graded answers, the second one was meant for the client.
        value, kind = last.score * _MAX_SCORE, ScoreType.NUMBER
    elif name == Guardrail.PROMPT_INJECTION:
        value, kind = max(verdict.score for verdict in verdicts), ScoreType.NUMBER
    return NewScore(
        request_id=request_id,
        score_name=f"guardrail.{name}",
        score_value=round(value, 6),
        score_type=kind.value,
        score_label=last.action.value,
        reason="; ".join(f"{verdict.stage} {verdict.action}: {verdict.detail}" for verdict in verdicts),
        evaluator_type=EVALUATOR,
        score_id=f"guardrail.{name}:{request_id}",
    )
