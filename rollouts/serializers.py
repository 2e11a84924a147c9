from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from rest_framework import serializers

from analytics.models import SCORE_NAME_CHARACTERS
from analytics.serializers.scores import MAX_NUMBER
from core.wire.fields import MoneyField, NumberField
from core.wire.serializers import BodySerializer, RowSerializer, StrictSerializer
from core.wire.shown import shown_as
from rollouts import shapes
from rollouts.allocation import AllocationType
from rollouts.evaluation import Action, Metric, to_json
from rollouts.evaluation.policy import ALPHA, RATES, Threshold
from rollouts.evaluation.quality.rules import DEFAULT_MARGIN, GOAL_MARGIN
from rollouts.evaluation.thresholds import FACTORS, RATE_POINTS, margin_problem
from rollouts.gate.registry import NewShadow
from rollouts.gate.state import Standing
from rollouts.models import (
    NAME_CHARACTERS,
    REASON_CHARACTERS,
    Gate,
    Mode,
    Rollout,
    RolloutStage,
    RolloutTransition,
)
from rollouts.quality.entries import QualityEntry, entries_of, is_test
from rollouts.quality.shown import quality_shown
from rollouts.quality.start import MAX_EVALUATORS
from rollouts.quality.warnings import warnings_of
from rollouts.selectors import current_stage, earlier_rollbacks, gates
from rollouts.services import NewRollout
from rollouts.states import TEST_STAGES, StageError, stages_from
from rollouts.verdicts.policies import COST_ALLOWANCE, MAX_COST_ALLOWANCE, policy_of

MAX_SHADOW_USD = 1_000_000
_MAX_VERSION = 2**31 - 1
_INDEX = re.compile(r"\[(\d+)\]")


def _between(value: float) -> None:
    if not 0 < value < 1:
        raise serializers.ValidationError("Must be above 0 and below 1.")


def _above_0(value: float | Decimal) -> None:
    if value <= 0:
        raise serializers.ValidationError("Must be above 0.")


class StageSerializer(RowSerializer[RolloutStage]):
    status = serializers.CharField(read_only=True)

    class Meta:
        model = RolloutStage
        fields = [*shapes.RolloutStageEntry.__annotations__]


class TransitionSerializer(RowSerializer[RolloutTransition]):
    class Meta:
        model = RolloutTransition
        fields = [*shapes.RolloutTransitionEntry.__annotations__]


class RolloutListSerializer(serializers.ListSerializer[Rollout]):
    """Rollouts whose gates are looked up together."""

    def to_representation(self, data: Any) -> Any:
        rows = list(data)
        each: Any = self.child
        each.gates = gates(rows)
        return super().to_representation(rows)


class RolloutSerializer(RowSerializer[Rollout]):
    """`current_stage` and `current_weight` are null before the start; `evaluation` is null before the first verdict.
    `warnings` say, from the start on, where evaluators do less than was asked for.

    `earlier_rollbacks` are the rollouts to the same target that were rolled back before this one was made. Each of
    them had its own chance of a false verdict, and this one has it again.
    """

    gates: Mapping[UUID, Standing] = {}
    """Those of a list, which sets them before its rows are shown."""

    config_name = serializers.CharField(source="config.name", read_only=True)
    baseline_version_number = serializers.IntegerField(source="baseline_version.number", read_only=True)
    target_version_number = serializers.IntegerField(source="target_version.number", read_only=True)
    kind = serializers.SerializerMethodField()
    policy = serializers.SerializerMethodField()
    quality = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()
    gate = serializers.SerializerMethodField()
    current_stage = serializers.SerializerMethodField()
    current_weight = serializers.SerializerMethodField()
    stages = StageSerializer(many=True, read_only=True)
    evaluation = serializers.SerializerMethodField()
    earlier_rollbacks = serializers.SerializerMethodField()

    class Meta:
        model = Rollout
        fields = [*shapes.RolloutEntry.__annotations__]
        list_serializer_class = RolloutListSerializer

    def get_kind(self, rollout: Rollout) -> str:
        return "ab_test" if is_test(entries_of(rollout)) else "rollout"

    def get_policy(self, rollout: Rollout) -> dict[str, Any]:
        shown: dict[str, Any] = to_json(policy_of(rollout))
        return shown

    def get_quality(self, rollout: Rollout) -> list[dict[str, Any]]:
        return quality_shown(rollout)

    def get_warnings(self, rollout: Rollout) -> list[str]:
        return warnings_of(rollout)

    def get_gate(self, rollout: Rollout) -> shapes.RolloutGate:
        known = self.gates or gates([rollout])
        return gate_shown(rollout, known[rollout.pk])

    def get_current_stage(self, rollout: Rollout) -> int | None:
        return rollout.current_stage or None

    def get_current_weight(self, rollout: Rollout) -> int | None:
        stage = current_stage(rollout)
        return stage.weight if stage else None

    def get_evaluation(self, rollout: Rollout) -> dict[str, Any] | None:
        found = rollout.evaluation
        if found.decided_at is None:
            return None
        short = {name: found.verdict.get(name) for name in ("status", "decision", "reason", "explanation", "overdue")}
        return {**short, "decided_at": found.decided_at}

    def get_earlier_rollbacks(self, rollout: Rollout) -> dict[str, Any]:
        return earlier_rollbacks_shown(rollout)


class RolloutDetailSerializer(RolloutSerializer):
    transitions = TransitionSerializer(many=True, read_only=True)

    class Meta(RolloutSerializer.Meta):
        fields = [*RolloutSerializer.Meta.fields, "transitions"]


class RateThresholdSerializer(StrictSerializer):
    """Points of the baseline's rate, as shares: 0.001 is a tenth of a point."""

    fail_from = NumberField(
        min_value=RATE_POINTS[0],
        max_value=RATE_POINTS[1],
        required=False,
        help_text="So much more may fail: 0.005 without it, of exact signals 0.01, and 1.25 times as much.",
    )
    margin = NumberField(
        min_value=RATE_POINTS[0],
        max_value=RATE_POINTS[1],
        required=False,
        help_text="Less than so much more passes: 0.01 or twice as much without it.",
    )


class FactorThresholdSerializer(StrictSerializer):
    """Factors of the baseline's figure, of cost of what is allowed."""

    fail_from = NumberField(
        min_value=FACTORS[0],
        max_value=FACTORS[1],
        required=False,
        help_text="So many times as much may fail: 1.2 without it, of average latency and cost 1.1.",
    )
    margin = NumberField(
        min_value=FACTORS[0],
        max_value=FACTORS[1],
        required=False,
        help_text="Less than so many times as much passes: 1.25 without it. An average latency does not have to pass.",
    )


class ThresholdsSerializer(StrictSerializer):
    """By metric the difference from which on it may fail, and the one below which it passes."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        kinds = {metric: RateThresholdSerializer if metric in RATES else FactorThresholdSerializer for metric in ALPHA}
        return {metric.value: kind(required=False) for metric, kind in kinds.items()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for name, given in attrs.items():
            if problem := margin_problem(Metric(name), Threshold(**given)):
                raise serializers.ValidationError({name: {"margin": [problem]}})
        return attrs


class PolicySerializer(StrictSerializer):
    """The action of an automatic rollout for each failing metric, how much more expensive the target may be (0.25 is a
    quarter), and thresholds of the rollout's own."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        actions = [action.value for action in Action]
        return {
            **{metric.value: serializers.ChoiceField(choices=actions, required=False) for metric in ALPHA},
            COST_ALLOWANCE: NumberField(min_value=0.0, max_value=MAX_COST_ALLOWANCE, required=False),
            "thresholds": ThresholdsSerializer(required=False),
        }


class QualityEntrySerializer(StrictSerializer):
    """An evaluator whose scores are judged, which needs an active online evaluation with a matched sample; or with
    `score_name` an outcome, the scores of that name that applications send."""

    evaluator_id = serializers.UUIDField(required=False, allow_null=True, default=None)
    version = serializers.IntegerField(
        min_value=1, required=False, allow_null=True, default=None, help_text="The newest one at the start without it."
    )
    action = serializers.ChoiceField(
        choices=[action.value for action in Action],
        required=False,
        allow_null=True,
        default=None,
        help_text="What follows where the answers are worse: `roll_back` for rules and labelled calibrated judges, else"
        " `hold`.",
    )
    margin = NumberField(
        required=False,
        validators=[_between],
        help_text=f"The largest loss of the mean score that does no harm, above 0 and below 1: {DEFAULT_MARGIN} without"
        f" it. Of a goal the smallest gain that counts: {GOAL_MARGIN} without it.",
    )
    label_share = NumberField(
        min_value=0,
        max_value=1,
        required=False,
        allow_null=True,
        default=None,
        help_text="That of the online evaluation, or 0 to judge scores without waiting for people's labels.",
    )
    score_name = serializers.CharField(
        max_length=SCORE_NAME_CHARACTERS,
        required=False,
        allow_null=True,
        default=None,
        help_text="An outcome in place of an evaluator. Numbers and booleans count, the first of each unit.",
    )
    worst = NumberField(
        min_value=0, max_value=MAX_NUMBER, default=0.0, help_text="The value of an outcome that counts as 0."
    )
    best = NumberField(
        min_value=0,
        max_value=MAX_NUMBER,
        default=1.0,
        help_text="The value that counts as 1; below `worst` where less is better.",
    )
    goal = serializers.BooleanField(default=False, help_text="Makes the rollout an A/B test of this outcome.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        # The name is an attribute of every field.
        required = serializers.BooleanField(
            default=False, help_text="From 50 % on the rollout goes on only when the evaluator passes."
        )
        return {**super().get_fields(), "required": required}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if (attrs["evaluator_id"] is None) == (attrs["score_name"] is None):
            problem = "Name an evaluator by its id, or an outcome by its `score_name`: one of the two."
            raise serializers.ValidationError({"evaluator_id": problem}, code="required")
        return attrs


class ShadowSerializer(StrictSerializer):
    """The shadow of a rollout with that gate."""

    evaluator_id = serializers.UUIDField(help_text="A pairwise evaluator, which compares the two answers.")
    version = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=_MAX_VERSION, help_text="The newest if it is left out."
    )
    rate = NumberField(
        max_value=1,
        validators=[_above_0],
        help_text="The share of the baseline's requests that the target answers, too.",
    )
    budget_usd = MoneyField(
        max_value=MAX_SHADOW_USD,
        validators=[_above_0],
        help_text="What answers and comparisons may cost together.",
    )


class PlanSerializer(BodySerializer):
    """The fields of a new rollout on which its forecast depends. Its baseline is the config's active version."""

    config_id = serializers.UUIDField()
    allocation_type = serializers.ChoiceField(
        choices=[item.value for item in AllocationType], default=AllocationType.RANDOM.value
    )
    stages: Any = serializers.ListField(child=serializers.DictField(), required=False, allow_null=True, default=None)

    def validate_stages(self, value: list[dict[str, Any]] | None) -> Any:
        try:
            return stages_from(value)
        except StageError as error:
            path = _INDEX.sub(r".\1", error.field).removeprefix("stages").removeprefix(".")
            detail: Any = [error.message]
            for step in reversed(path.split(".") if path else []):
                detail = {step: detail}
            raise serializers.ValidationError(detail) from error


class ForecastSerializer(PlanSerializer):
    policy = PolicySerializer(required=False)


class NewRolloutSerializer(ForecastSerializer):
    target_version_id = serializers.UUIDField()
    name = serializers.CharField(max_length=NAME_CHARACTERS, required=False, allow_blank=True, default="")
    mode = serializers.ChoiceField(choices=Mode.choices, default=Mode.MANUAL.value)
    gate = serializers.ChoiceField(choices=Gate.choices, default=Gate.NONE.value)
    gate_dataset_id = serializers.UUIDField(required=False, allow_null=True, default=None)
    quality: Any = serializers.ListSerializer(child=QualityEntrySerializer(), required=False, max_length=MAX_EVALUATORS)
    shadow = ShadowSerializer(required=False, allow_null=True, default=None)

    def new_rollout(self) -> NewRollout:
        data = dict(self.validated_data)
        typed: dict[str, Any] = {
            "mode": Mode(data["mode"]),
            "allocation_type": AllocationType(data["allocation_type"]),
            "policy": dict(data.get("policy") or {}),
            "gate": Gate(data["gate"]),
            "quality": [_entry(one) for one in data.get("quality") or ()],
            "shadow": NewShadow(**data["shadow"]) if data["shadow"] else None,
        }
        if is_test(typed["quality"]) and self.initial_data.get("stages") is None:
            typed["stages"] = TEST_STAGES
        return NewRollout(**data | typed)


def _entry(data: Mapping[str, Any]) -> QualityEntry:
    action = data["action"]
    margin = GOAL_MARGIN if data["goal"] else DEFAULT_MARGIN
    return QualityEntry(**{"margin": margin, **data, "action": None if action is None else Action(action)})


def earlier_rollbacks_shown(rollout: Rollout) -> dict[str, Any]:
    found = earlier_rollbacks(rollout)
    return {
        "count": len(found),
        "latest_at": found[0].ended_at if found else None,
        "rollout_ids": [one.pk for one in found],
    }


def gate_shown(rollout: Rollout, standing: Standing) -> shapes.RolloutGate:
    dataset_id = rollout.gate_dataset_id
    name: str | None = rollout.gate_dataset_name if dataset_id else None  # type: ignore[attr-defined]
    dataset = {"id": dataset_id, "name": name} if dataset_id else None
    return shown_as(shapes.RolloutGate, standing, kind=rollout.gate, dataset=dataset, shadow=standing.shadow or None)


class MoveSerializer(BodySerializer):
    reason = serializers.CharField(max_length=REASON_CHARACTERS, required=False, allow_blank=True, default="")


class BeginningSerializer(MoveSerializer):
    """The body of a transition that may give the target its first traffic. With `override_gate`, which takes a reason,
    it does so although the gate is not passed."""

    override_gate = serializers.BooleanField(required=False, default=False)


class PromotionSerializer(MoveSerializer):
    """The body of a promotion. With `from_stage` the rollout is promoted only if it is at this stage."""

    from_stage = serializers.IntegerField(min_value=1, required=False)
