from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict
from uuid import UUID

from rest_framework import serializers

from analytics.evaluators.services import MAX_VERSIONS
from analytics.models.online_evaluations import EvaluationState
from analytics.online_evaluations.matched import ONE_ARM
from analytics.parameters.requests import RequestParameters
from analytics.parameters.values import TextsField
from analytics.request_log.sources import NOT_OF_USERS
from core.wire.fields import MoneyField, NumberField
from core.wire.parameters import Parameters
from core.wire.serializers import BodySerializer
from core.wire.shown import shown_as
from gateway.evaluations.dry_run import MAX_REQUESTS
from gateway.evaluations.rules import Evaluation
from gateway.evaluations.services import NewOnlineEvaluation


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


def dry_run_entry(tried: Mapping[UUID, Evaluation], *, good_from: float, sees_content: bool) -> EvaluatorDryRun:
    """`detail` is null for a reader without content: it may speak of the answer."""
    results = [
        shown_as(
            TriedScore,
            found,
            request_id=request_id,
            is_good=None if found.score is None else found.score >= good_from,
            detail=found.detail if sees_content else None,
        )
        for request_id, found in tried.items()
    ]
    costs = [found.cost_usd for found in tried.values()]
    known = [cost for cost in costs if cost is not None]
    return {
        "results": results,
        "scored": sum(one["score"] is not None for one in results),
        "good": sum(bool(one["is_good"]) for one in results),
        "total_cost_usd": float(sum(known)) if len(known) == len(costs) else None,
    }


MAX_BUDGET_USD = 1_000_000
STATES = (EvaluationState.ACTIVE.value, EvaluationState.PAUSED.value)

_MAX_FILTER_CHARACTERS = 1024
_RATE = "The share of the answers that is scored."
_MATCHED = "As many answers of both arms of each rollout, and no others."
# The sample may not depend on the answer, also not through who gave it after a failover.
_ASKED = (
    "session_id", "user_id", "source", "requested_model", "prompt_config_id", "prompt_version", "rollout_id", "variant",
    "client_request_id", "api_key_id", "team_id", "language", "metadata",
)  # fmt: skip
FILTERS = frozenset({*_ASKED, *(f"not_{name}" for name in _ASKED)})


class OnlineEvaluationParameters(Parameters):
    state = serializers.ChoiceField(required=False, choices=STATES)
    evaluator_id = serializers.UUIDField(required=False)


def _above_zero(value: float) -> None:
    if value <= 0:
        raise serializers.ValidationError("Must be above 0, or null for no labels.")


class OnlineEvaluationChangeSerializer(BodySerializer):
    """The fields to change; an omitted one stays as it is. Samples that were taken stay."""

    filter = serializers.DictField(
        child=TextsField(_MAX_FILTER_CHARACTERS),
        required=False,
        help_text="Parameters of GET requests that are known before the answer.",
    )
    rate = NumberField(required=False, min_value=0, max_value=1, help_text=_RATE)
    monthly_budget_usd = MoneyField(
        max_value=MAX_BUDGET_USD,
        required=False,
        allow_null=True,
        help_text="What its judging may cost in a month of UTC. Where the evaluator asks a model and none is given, a"
        " tenth of the project's budget at this time; needed where that has none.",
    )
    matched = serializers.BooleanField(required=False, help_text=_MATCHED)
    label_share = NumberField(
        max_value=1,
        required=False,
        allow_null=True,
        validators=[_above_zero],
        help_text="The share of what is due that a person is to label, too, above 0; null for none.",
    )
    state = serializers.ChoiceField(required=False, choices=STATES)

    def validate_filter(self, value: dict[str, Any]) -> dict[str, Any]:
        given = {name: text for name, text in value.items() if text != ""}
        unknown = sorted(given.keys() - FILTERS)
        if unknown:
            problem = "A sample is filtered by what is known before the answer, by parameters of GET requests."
            raise serializers.ValidationError({unknown[0][:100]: problem})
        RequestParameters(data=given).is_valid(raise_exception=True)
        source = given.get("source", [])
        sources = {source} if isinstance(source, str) else set(source)
        if sources and sources <= set(NOT_OF_USERS):
            problem = f"No sample has answers of these sources: {', '.join(NOT_OF_USERS)}."
            raise serializers.ValidationError({"source": problem})
        return given


class NewOnlineEvaluationSerializer(OnlineEvaluationChangeSerializer):
    """An online evaluation, which is active from the beginning."""

    state = None  # type: ignore[assignment]  # A new one is active.
    evaluator_id = serializers.UUIDField()
    version = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MAX_VERSIONS,
        help_text="The version that scores; without it the newest one at the time of each request.",
    )
    rate = NumberField(min_value=0, max_value=1, help_text=_RATE)
    matched = serializers.BooleanField(required=False, default=False, help_text=_MATCHED)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        require_both_arms(attrs.get("filter", {}), matched=attrs["matched"])
        return attrs

    def new_evaluation(self) -> NewOnlineEvaluation:
        return NewOnlineEvaluation(**self.validated_data)


def require_both_arms(filters: dict[str, Any], *, matched: bool) -> None:
    """Raises ValidationError if the filter leaves out an arm of a matched sample."""
    if matched and (named := sorted(filters.keys() & ONE_ARM)):
        problem = "A matched sample takes both arms of a rollout."
        raise serializers.ValidationError({"filter": {named[0]: [problem]}})
