"""The bodies that make and change online evaluations."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from analytics.evaluators.services import MAX_VERSIONS
from analytics.models.online_evaluations import EvaluationState
from analytics.online_evaluations.matched import ONE_ARM
from analytics.online_evaluations.reading import NOT_SAMPLED
from analytics.online_evaluations.services import NewOnlineEvaluation
from analytics.parameters.requests import RequestParameters
from analytics.parameters.values import TextsField
from core.wire.fields import MoneyField, NumberField
from core.wire.parameters import Parameters
from core.wire.serializers import BodySerializer

MAX_BUDGET_USD = 1_000_000
STATES = (EvaluationState.ACTIVE.value, EvaluationState.PAUSED.value)

_MAX_FILTER_CHARACTERS = 1024
# The sample may not depend on the answer, also not through who gave it after a failover.
_ASKED = (
    "session_id", "user_id", "source", "requested_model", "prompt_config_id", "prompt_version", "rollout_id", "variant",
    "client_request_id", "api_key_id", "team_id", "language", "metadata",
)  # fmt: skip
FILTERS = frozenset({*_ASKED, *(f"not_{name}" for name in _ASKED)})


class OnlineEvaluationParameters(Parameters):
    state = serializers.ChoiceField(required=False, choices=STATES)
    evaluator_id = serializers.UUIDField(required=False)


class _Fields(BodySerializer):
    """The fields that can be given at first and later."""

    def validate_filter(self, value: dict[str, Any]) -> dict[str, Any]:
        given = {name: text for name, text in value.items() if text != ""}
        unknown = sorted(given.keys() - FILTERS)
        if unknown:
            problem = "A sample is filtered by what is known before the answer, by parameters of GET requests."
            raise serializers.ValidationError({unknown[0][:100]: problem})
        RequestParameters(data=given).is_valid(raise_exception=True)
        source = given.get("source", [])
        sources = {source} if isinstance(source, str) else set(source)
        if sources and sources <= set(NOT_SAMPLED):
            problem = f"No sample has answers of these sources: {', '.join(NOT_SAMPLED)}."
            raise serializers.ValidationError({"source": problem})
        return given


def require_both_arms(filters: dict[str, Any], *, matched: bool) -> None:
    """Raises ValidationError where the filter leaves out an arm of a matched sample."""
    if matched and (named := sorted(filters.keys() & ONE_ARM)):
        problem = "A matched sample takes both arms of a rollout."
        raise serializers.ValidationError({"filter": {named[0]: [problem]}})


def _filter_field(**options: Any) -> serializers.DictField:
    return serializers.DictField(
        child=TextsField(_MAX_FILTER_CHARACTERS),
        required=False,
        help_text="Parameters of GET requests that are known before the answer.",
        **options,
    )


def _rate_field(**options: Any) -> NumberField:
    return NumberField(min_value=0, max_value=1, help_text="The share of the answers that is scored.", **options)


def _label_share_field(**options: Any) -> NumberField:
    return NumberField(
        max_value=1,
        required=False,
        allow_null=True,
        validators=[_above_zero],
        help_text="The share of what is due that a person is to label, too, above 0; null for none.",
        **options,
    )


def _above_zero(value: float) -> None:
    if value <= 0:
        raise serializers.ValidationError("Must be above 0, or null for no labels.")


def _budget_field(**options: Any) -> MoneyField:
    return MoneyField(
        max_value=MAX_BUDGET_USD,
        required=False,
        allow_null=True,
        help_text="What its judging may cost in a month of UTC. Where the evaluator asks a model and none is given, a"
        " tenth of the project's budget at this time; needed where that has none.",
        **options,
    )


class NewOnlineEvaluationSerializer(_Fields):
    evaluator_id = serializers.UUIDField()
    version = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=MAX_VERSIONS,
        help_text="The version that scores; without it the newest one at the time of each request.",
    )
    filter = _filter_field(default=dict)
    rate = _rate_field()
    monthly_budget_usd = _budget_field(default=None)
    matched = serializers.BooleanField(
        required=False, default=False, help_text="As many answers of both arms of each rollout, and no others."
    )
    label_share = _label_share_field(default=None)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        require_both_arms(attrs["filter"], matched=attrs["matched"])
        return attrs

    def new_evaluation(self) -> NewOnlineEvaluation:
        return NewOnlineEvaluation(**self.validated_data)


class OnlineEvaluationChangeSerializer(_Fields):
    """The fields to change; an omitted one stays as it is. Samples that were taken stay."""

    filter = _filter_field()
    rate = _rate_field(required=False)
    monthly_budget_usd = _budget_field()
    matched = serializers.BooleanField(required=False)
    label_share = _label_share_field()
    state = serializers.ChoiceField(required=False, choices=STATES)
