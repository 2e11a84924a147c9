from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar

from rest_framework import serializers

from analytics.parameters.requests import RequestParameters
from analytics.queries.request_samples import SampleOrder
from analytics.request_log.record import Operation
from core.wire.fields import MoneyField, NumberField
from core.wire.parameters import Parameters
from core.wire.serializers import BodySerializer, StrictSerializer
from gateway.experiments.candidates import NewCandidate
from gateway.experiments.evaluators import NewEvaluator
from gateway.experiments.plan import DEFAULT_MARGIN, MAX_ITEMS, NewExperiment
from gateway.tables.experiment import (
    ERROR_CHARACTERS,
    GIVEN_FIELDS,
    LABELS,
    NAME_CHARACTERS,
    TIE,
    ExperimentAnswer,
    ExperimentState,
    ExperimentVerdict,
)

MIN_CANDIDATES_OF_REQUESTS, MAX_CANDIDATES = 2, len(LABELS)
DEFAULT_ITEMS, DEFAULT_ITEMS_OF_DATASET = 20, 400
MAX_EVALUATORS, MAX_REPEATS, MAX_TOOL_CALLS = 10, 5, 128
MAX_COST_USD = 1_000_000
_MAX_VERSION = 2**31 - 1
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
    application = serializers.CharField(
        required=False,
        allow_blank=True,
        allow_null=True,
        max_length=NAME_CHARACTERS,
        help_text="A version of your own application, which sends its answers itself; it has no other fields.",
    )


class ExperimentParameters(Parameters):
    dataset_id = serializers.UUIDField(required=False, help_text="The data set whose items were answered.")
    state = serializers.ChoiceField(required=False, choices=ExperimentState.choices)
    verdict = serializers.ChoiceField(required=False, choices=ExperimentVerdict.choices)
    rollout_id = serializers.UUIDField(required=False, help_text="The rollout whose shadow it is.")


class ExperimentEvaluatorSerializer(StrictSerializer):
    """A version of an evaluator that scores each answer, and what its scores decide."""

    evaluator_id = serializers.UUIDField()
    version = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=_MAX_VERSION, help_text="The newest if it is left out."
    )
    required = serializers.BooleanField(  # type: ignore[assignment]  # REST framework takes fields off the class
        required=False, default=True, help_text="Whether the target has to be shown not to be worse by the margin."
    )
    must_pass = serializers.BooleanField(
        required=False, default=False, help_text="Whether the target may fail on no item that the baseline passed."
    )
    min_rate = NumberField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=1,
        help_text="The least share of good answers; then must_pass asks for that share alone.",
    )


class NewExperimentSerializer(BodySerializer):
    name = serializers.CharField(required=False, allow_blank=True, default="", max_length=NAME_CHARACTERS)
    candidates = serializers.ListField(
        child=CandidateSerializer(),
        min_length=1,
        max_length=MAX_CANDIDATES,
        help_text="In order: A, B, …; one is enough with a data set.",
    )
    dataset_id = serializers.UUIDField(
        required=False, allow_null=True, help_text="The data set whose items are answered, in place of past requests."
    )
    dataset_version = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=_MAX_VERSION, help_text="The latest if it is left out."
    )
    filter = serializers.DictField(
        required=False, default=dict, help_text="Parameters of the request log; source is gateway if it is left out."
    )
    order = serializers.ChoiceField(
        required=False, choices=[str(order) for order in SampleOrder], default=str(SampleOrder.NEWEST)
    )
    item_limit = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MAX_ITEMS,
        help_text=f"{DEFAULT_ITEMS} if it is left out, {DEFAULT_ITEMS_OF_DATASET} with a data set.",
    )
    judge = serializers.BooleanField(
        required=False, default=False, help_text="Whether the project's judge_model scores the answers."
    )
    evaluators = serializers.ListField(
        child=ExperimentEvaluatorSerializer(), required=False, default=list, max_length=MAX_EVALUATORS
    )
    repeats = serializers.IntegerField(
        required=False, default=1, min_value=1, max_value=MAX_REPEATS, help_text="Answers of a candidate to an item."
    )
    baseline = serializers.ChoiceField(
        required=False,
        allow_null=True,
        default=LABELS[0],
        choices=list(LABELS),
        help_text="The candidate that the others are compared with; null for no verdict.",
    )
    margin = NumberField(
        required=False,
        default=DEFAULT_MARGIN,
        help_text="The largest loss of the mean score that does no harm, between 0 and 1.",
    )
    reuse = serializers.BooleanField(
        required=False, default=True, help_text="Whether answers and scores of earlier experiments are taken."
    )
    max_cost_usd = MoneyField(
        max_value=MAX_COST_USD, required=False, allow_null=True, help_text="No more is spent than this."
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

    def validate_margin(self, value: float) -> float:
        if not 0 < value < 1:
            raise serializers.ValidationError("Must be between 0 and 1.")
        return value

    def validate_max_cost_usd(self, value: Decimal | None) -> Decimal | None:
        if value == 0:
            raise serializers.ValidationError("Must be above 0.")
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("dataset_id") is not None:
            if attrs["filter"]:
                raise serializers.ValidationError({"filter": ["The items are those of the data set: leave it out."]})
        elif len(attrs["candidates"]) < MIN_CANDIDATES_OF_REQUESTS:
            problem = f"Without a data set there are at least {MIN_CANDIDATES_OF_REQUESTS} candidates."
            raise serializers.ValidationError({"candidates": [problem]})
        elif attrs.get("dataset_version") is not None:
            raise serializers.ValidationError({"dataset_version": ["Name the data set, too."]})
        names = ("model", "application")
        candidates = [
            NewCandidate(**{**given, **{name: given.get(name) or "" for name in names}})
            for given in attrs["candidates"]
        ]
        filters = RequestParameters(data={"source": _CLIENTS, **attrs["filter"]}).to_filter()
        return {**attrs, "candidates": candidates, "filters": filters}

    def new_experiment(self) -> NewExperiment:
        given = dict(self.validated_data)
        default_items = DEFAULT_ITEMS if given.get("dataset_id") is None else DEFAULT_ITEMS_OF_DATASET
        given["item_limit"] = given.get("item_limit") or default_items
        given["order"] = SampleOrder(given["order"])
        given["evaluators"] = [NewEvaluator(**fields) for fields in given["evaluators"]]
        given["baseline"] = given["baseline"] or ""
        return NewExperiment(parameters=given.pop("filter"), **given)


class GivenAnswerSerializer(BodySerializer, serializers.ModelSerializer[ExperimentAnswer]):
    """An application's answer: `content`, `tool_calls` or both; or the `error` for which there is none."""

    label = serializers.ChoiceField(choices=list(LABELS), help_text="The candidate that is the application.")  # type: ignore[assignment]  # REST framework takes fields off the class
    repeat = serializers.IntegerField(required=False, default=1, min_value=1, max_value=MAX_REPEATS)
    content = serializers.CharField(required=False, allow_null=True, allow_blank=True, trim_whitespace=False)
    tool_calls = serializers.ListField(child=serializers.DictField(), required=False, max_length=MAX_TOOL_CALLS)
    error = serializers.CharField(
        required=False,
        allow_null=True,
        max_length=ERROR_CHARACTERS,
        help_text="Why the application gave no answer; it counts as a bad one.",
    )
    cost_usd = MoneyField(required=False, allow_null=True, max_value=MAX_COST_USD)

    class Meta:
        model = ExperimentAnswer
        fields = ("project_id", "label", "repeat", "content", "tool_calls", "error", *GIVEN_FIELDS)
        extra_kwargs: ClassVar[dict[str, Any]] = {
            "request_id": {"help_text": "The request of the log that made the answer."},
            **{name: {"max_value": _MAX_VERSION} for name in ("latency_ms", "prompt_tokens", "completion_tokens")},
        }

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        is_answered = attrs.get("content") is not None or bool(attrs.get("tool_calls"))
        if is_answered == bool(attrs.get("error")):
            raise serializers.ValidationError({"content": ["Send either an answer (content, tool_calls) or an error."]})
        return attrs


class WinnerSerializer(BodySerializer):
    winner = serializers.ChoiceField(
        choices=[*LABELS, TIE], allow_null=True, help_text="The label of the better answer, tie, or null for no choice."
    )
