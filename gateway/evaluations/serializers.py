"""The JSON of dry runs of evaluators."""

from __future__ import annotations

from typing import TypedDict
from uuid import UUID

from rest_framework import serializers

from core.wire.serializers import BodySerializer
from gateway.evaluations.dry_run import MAX_REQUESTS, Tried


class EvaluatorDryRunSerializer(BodySerializer):
    request_ids = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=MAX_REQUESTS, help_text="Requests of the log."
    )
    definition = serializers.DictField(
        required=False, allow_null=True, help_text="A definition to try in place of the newest version's."
    )
    expected = serializers.JSONField(
        required=False, allow_null=True, help_text="The expected answer, for evaluators that compare with one."
    )


class TriedScore(TypedDict):
    request_id: UUID
    score: float | None
    is_good: bool | None
    reason: str
    detail: str | None
    cost_usd: float | None


class EvaluatorDryRun(TypedDict):
    results: list[TriedScore]
    scored: int
    good: int
    total_cost_usd: float | None


def dry_run_entry(tried: list[Tried], *, good_from: float, sees_content: bool) -> EvaluatorDryRun:
    """`detail` is null for a reader without content: it may speak of the answer."""
    results = [_entry(one, good_from=good_from, sees_content=sees_content) for one in tried]
    costs = [one.evaluation.cost_usd for one in tried]
    known = [cost for cost in costs if cost is not None]
    return {
        "results": results,
        "scored": sum(one["score"] is not None for one in results),
        "good": sum(bool(one["is_good"]) for one in results),
        "total_cost_usd": float(sum(known)) if len(known) == len(costs) else None,
    }


def _entry(tried: Tried, *, good_from: float, sees_content: bool) -> TriedScore:
    found = tried.evaluation
    return {
        "request_id": tried.request_id,
        "score": found.score,
        "is_good": None if found.score is None else found.score >= good_from,
        "reason": found.reason,
        "detail": found.detail if sees_content else None,
        "cost_usd": None if found.cost_usd is None else float(found.cost_usd),
    }
