"""The JSON of evaluators and their versions."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from analytics.evaluators.definitions import KINDS
from analytics.evaluators.services import MAX_VERSIONS, NewVersion
from analytics.models import Evaluator, EvaluatorVersion
from analytics.models.evaluators import (
    DEFAULT_GOOD_FROM,
    EVALUATOR_DESCRIPTION_CHARACTERS,
    EVALUATOR_NAME_CHARACTERS,
    EvaluatorState,
)
from core.wire.fields import NumberField
from core.wire.parameters import Parameters
from core.wire.serializers import BodySerializer


class EvaluatorParameters(Parameters):
    state = serializers.ChoiceField(required=False, choices=EvaluatorState.choices)
    kind = serializers.ChoiceField(required=False, choices=list(KINDS))


class CalibrationParameters(Parameters):
    version = serializers.IntegerField(required=False, min_value=1, max_value=MAX_VERSIONS)


class EvaluatorVersionSerializer(serializers.ModelSerializer[EvaluatorVersion]):
    definition = serializers.DictField()

    class Meta:
        model = EvaluatorVersion
        fields = ["number", "definition", "good_from", "created_by", "created_at"]
        read_only_fields = fields


class EvaluatorSerializer(serializers.ModelSerializer[Evaluator]):
    """An evaluator with all its versions, the newest first; `definition` and `good_from` are those of the newest."""

    kind = serializers.ChoiceField(choices=list(KINDS))
    version = serializers.SerializerMethodField()
    definition = serializers.SerializerMethodField()
    good_from = serializers.SerializerMethodField()
    asks_a_model = serializers.SerializerMethodField()
    versions = EvaluatorVersionSerializer(many=True, read_only=True)

    class Meta:
        model = Evaluator
        fields = [
            "id", "name", "description", "kind", "state", "asks_a_model", "version", "definition", "good_from",
            "versions", "created_by", "created_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_version(self, row: Evaluator) -> int:
        return self._newest(row).number

    def get_definition(self, row: Evaluator) -> dict[str, Any]:
        definition: dict[str, Any] = self._newest(row).definition
        return definition

    def get_good_from(self, row: Evaluator) -> float:
        return self._newest(row).good_from

    def get_asks_a_model(self, row: Evaluator) -> bool:
        return KINDS[row.kind].asks_a_model

    def _newest(self, row: Evaluator) -> EvaluatorVersion:
        return max(row.versions.all(), key=lambda version: version.number)


class NewEvaluatorVersionSerializer(BodySerializer):
    definition = serializers.DictField(help_text="The fields of the kind (docs/evaluators.md).")
    good_from = NumberField(
        required=False, default=DEFAULT_GOOD_FROM, min_value=0, max_value=1, help_text="The score of a good answer."
    )

    def new_version(self) -> NewVersion:
        given = self.validated_data
        return NewVersion(given["definition"], given["good_from"])


class NewEvaluatorSerializer(NewEvaluatorVersionSerializer):
    name = serializers.CharField(max_length=EVALUATOR_NAME_CHARACTERS)
    kind = serializers.ChoiceField(choices=list(KINDS))
    description = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=EVALUATOR_DESCRIPTION_CHARACTERS
    )


class EvaluatorChangeSerializer(BodySerializer):
    """The fields to change; an omitted one stays as it is."""

    name = serializers.CharField(required=False, max_length=EVALUATOR_NAME_CHARACTERS)
    description = serializers.CharField(required=False, allow_blank=True, max_length=EVALUATOR_DESCRIPTION_CHARACTERS)
    state = serializers.ChoiceField(required=False, choices=EvaluatorState.choices)
