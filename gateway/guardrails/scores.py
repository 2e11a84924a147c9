"""Verdicts as evaluation scores: `guardrail.<name>`, one a request and guardrail, however often it is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from analytics.models import ScoreType
from analytics.services import NewScore, record_scores
from gateway.guardrails.verdicts import Action, Guardrail, Verdict

EVALUATOR = "guardrail"
_HIGHEST = 100


def record_verdicts(project_id: UUID, verdicts: Mapping[str, Iterable[Verdict]]) -> int:
    """Records what was said of these requests, by their ids; returns how many scores that makes.

    The same again changes nothing.
    """
    scores = [score for request_id, said in verdicts.items() for score in scores_of(request_id, said)]
    if scores:
        record_scores(project_id=project_id, scores=scores, actor=EVALUATOR)
    return len(scores)


def scores_of(request_id: str, verdicts: Iterable[Verdict]) -> list[NewScore]:
    """One score for each guardrail that had something to say; none for what could not be judged."""
    by_guardrail: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.action is not Action.SKIPPED:
            by_guardrail.setdefault(verdict.guardrail, []).append(verdict)
    return [_score(request_id, name, said) for name, said in by_guardrail.items()]


def _score(request_id: str, name: str, said: list[Verdict]) -> NewScore:
    last = said[-1]
    value, kind = 1.0, ScoreType.BOOLEAN
    if name == Guardrail.LOW_QUALITY:
        # Of two answers to one request the second was meant for the client.
        value, kind = last.score * _HIGHEST, ScoreType.NUMBER
    elif name == Guardrail.PROMPT_INJECTION:
        value, kind = max(verdict.score for verdict in said), ScoreType.NUMBER
    return NewScore(
        request_id=request_id,
        score_name=f"guardrail.{name}",
        score_value=round(value, 6),
        score_type=kind.value,
        score_label=last.action.value,
        reason="; ".join(f"{verdict.stage} {verdict.action}: {verdict.detail}" for verdict in said),
        evaluator_type=EVALUATOR,
        score_id=f"guardrail.{name}:{request_id}",
    )
