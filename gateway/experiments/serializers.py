"""Wire shapes of the bodies of experiments (docs/experiments.md)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from typing_extensions import override

from analytics.parameters.requests import RequestParameters
from analytics.queries.request_samples import SampleOrder
from analytics.request_log.record import Operation
from core.wire.fields import NumberField
from core.wire.serializers import BodySerializer, StrictSerializer
from gateway.experiments.candidates import NewCandidate
from gateway.experiments.services import MAX_ITEMS, NewExperiment
from gateway.tables.experiment import LABELS, NAME_CHARACTERS, TIE

MIN_CANDIDATES, MAX_CANDIDATES = 2, len(LABELS)
DEFAULT_ITEMS = 20
_MODEL_CHARACTERS = 512
_CLIENTS = "gateway"


class CandidateSerializer(StrictSerializer):
    """The changes that one candidate makes to each past request; a field that is left out stays as it was."""

    version_id = serializers.UUIDField(required=False, allow_null=True, help_text="A version of a managed prompt.")
    model = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, max_length=_MODEL_CHARACTERS, help_text="A model or auto."
    )
    temperature = NumberField(required=False, allow_null=True, min_value=0, max_value=2)
    max_tokens = serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=1_000_000)


class NewExperimentSerializer(BodySerializer):
    name = serializers.CharField(required=False, allow_blank=True, default="", max_length=NAME_CHARACTERS)
    candidates = serializers.ListField(
        child=CandidateSerializer(), min_length=MIN_CANDIDATES, max_length=MAX_CANDIDATES, help_text="In order: A, B, …"
    )
    filter = serializers.DictField(
        required=False, default=dict, help_text="Parameters of the request log; source is gateway if it is left out."
    )
    order = serializers.ChoiceField(
        required=False, choices=[str(order) for order in SampleOrder], default=str(SampleOrder.NEWEST)
    )
    item_limit = serializers.IntegerField(required=False, default=DEFAULT_ITEMS, min_value=1, max_value=MAX_ITEMS)
    judge = serializers.BooleanField(
        required=False, default=False, help_text="Whether the project's judge_model scores the answers."
    )

    def validate_filter(self, value: dict[str, Any]) -> dict[str, Any]:
        known = RequestParameters().fields
        unknown = sorted(set(value) - set(known))
        if unknown:
            raise serializers.ValidationError({unknown[0][:100]: ["The request log has no such parameter."]})
        given = {name: item for name, item in value.items() if item not in ("", None)}
        if given.get("operation", str(Operation.CHAT)) not in (str(Operation.CHAT), [str(Operation.CHAT)]):
            raise serializers.ValidationError({"operation": ["Only chat completions can be tried."]})
        parameters = RequestParameters(data={"source": _CLIENTS, **given})
        parameters.is_valid(raise_exception=True)
        return given

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        candidates = [_candidate(given) for given in attrs["candidates"]]
        filters = RequestParameters(data={"source": _CLIENTS, **attrs["filter"]}).to_filter()
        return {**attrs, "candidates": candidates, "filters": filters}

    def new_experiment(self) -> NewExperiment:
        given = self.validated_data
        return NewExperiment(
            candidates=given["candidates"],
            filters=given["filters"],
            item_limit=given["item_limit"],
            order=SampleOrder(given["order"]),
            judge=given["judge"],
            name=given["name"],
            parameters=given["filter"],
        )


class WinnerSerializer(BodySerializer):
    winner = serializers.ChoiceField(
        choices=[*LABELS, TIE], allow_null=True, help_text="The label of the better answer, tie, or null for no choice."
    )


def _candidate(given: dict[str, Any]) -> NewCandidate:
    return NewCandidate(
        version_id=given.get("version_id"),
        model=given.get("model") or "",
        temperature=given.get("temperature"),
        max_tokens=given.get("max_tokens"),
    )
