"""The bodies of the requests that make, work through and assign review queues."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from rest_framework import serializers

from analytics.models import REASON_CHARACTERS, SCORE_LABEL_CHARACTERS, SCORE_NAME_CHARACTERS
from analytics.models.reviews import (
    INSTRUCTIONS_CHARACTERS,
    QUEUE_NAME_CHARACTERS,
    USERNAME_CHARACTERS,
    ItemState,
    QueueState,
    RubricKind,
)
from analytics.parameters.requests import RequestParameters
from analytics.parameters.values import TextsField
from analytics.reviews.rubric import MAX_LABELS
from analytics.reviews.services import MAX_ITEMS, Answer, NewQueue
from analytics.serializers.scores import ScoreValueField
from core.rights.asking import rights_in
from core.roles import Right
from core.wire.fields import NumberField
from core.wire.parameters import Parameters
from core.wire.serializers import BodySerializer

DEFAULT_ITEMS = 100
DEFAULT_MINIMUM, DEFAULT_MAXIMUM = 1.0, 5.0

# The bounds of a score that is a number (`analytics.serializers.scores`).
_MAX_NUMBER = 100
_MAX_FILTER_CHARACTERS = 1024


class QueueParameters(Parameters):
    state = serializers.ChoiceField(required=False, choices=QueueState.choices)


class ItemParameters(Parameters):
    state = serializers.ChoiceField(required=False, choices=ItemState.choices)
    assignee = serializers.CharField(required=False, max_length=USERNAME_CHARACTERS)


class NewReviewQueueSerializer(BodySerializer):
    """The body of a new queue. The fields of other kinds than the rubric's are refused."""

    name = serializers.CharField(max_length=QUEUE_NAME_CHARACTERS)
    filter = serializers.DictField(
        child=TextsField(_MAX_FILTER_CHARACTERS),
        required=False,
        default=dict,
    )
    sample_size = serializers.IntegerField(required=False, default=DEFAULT_ITEMS, min_value=1, max_value=MAX_ITEMS)
    score_name = serializers.CharField(max_length=SCORE_NAME_CHARACTERS)
    kind = serializers.ChoiceField(choices=RubricKind.choices)
    labels = serializers.ListField(
        child=serializers.CharField(max_length=SCORE_LABEL_CHARACTERS), required=False, default=list
    )
    minimum = NumberField(required=False, allow_null=True, default=None, min_value=0, max_value=_MAX_NUMBER)
    maximum = NumberField(required=False, allow_null=True, default=None, min_value=0, max_value=_MAX_NUMBER)
    instructions = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=INSTRUCTIONS_CHARACTERS
    )
    compared_score_name = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=SCORE_NAME_CHARACTERS
    )
    evaluator_id = serializers.UUIDField(
        required=False, allow_null=True, default=None, help_text="The evaluator that these labels calibrate."
    )
    due_labels = serializers.BooleanField(
        required=False,
        default=False,
        help_text="The labels that online evaluations of the evaluator have due, in place of requests of a filter.",
    )

    def validate_filter(self, value: dict[str, Any]) -> dict[str, Any]:
        given = {name: text for name, text in value.items() if text != ""}
        unknown = sorted(given.keys() - RequestParameters().fields.keys())
        if unknown:
            raise serializers.ValidationError({unknown[0][:100]: "GET requests has no such parameter."})
        RequestParameters(data=given).is_valid(raise_exception=True)
        return given

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["kind"] == RubricKind.NUMBER:
            attrs = {**attrs, **_bounds(attrs)}
        elif attrs["minimum"] is not None or attrs["maximum"] is not None:
            named = "minimum" if attrs["minimum"] is not None else "maximum"
            raise serializers.ValidationError({named: "Only a rubric of numbers has bounds."})
        _require_labels(attrs["kind"], attrs["labels"])
        if attrs["evaluator_id"] is not None and attrs["kind"] == RubricKind.CATEGORY:
            raise serializers.ValidationError({"kind": "An evaluator is calibrated by booleans or numbers."})
        if attrs["due_labels"] and attrs["evaluator_id"] is None:
            raise serializers.ValidationError({"evaluator_id": "Must be given for due labels."})
        if attrs["due_labels"] and attrs["filter"]:
            raise serializers.ValidationError({"filter": "Due labels were chosen with the sample."})
        return attrs

    def new_queue(self) -> NewQueue:
        values = dict(self.validated_data)
        parameters = values.pop("filter")
        return NewQueue(**values, parameters=parameters, filters=RequestParameters(data=parameters).to_filter())


class NewReviewItemSerializer(BodySerializer):
    """The body that adds a request to a queue."""

    request_id = serializers.UUIDField()


class ReviewAnswerSerializer(BodySerializer):
    is_needed = True

    score_value = ScoreValueField(required=False, allow_null=True)
    score_label = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=SCORE_LABEL_CHARACTERS
    )
    reason = serializers.CharField(required=False, allow_null=True, allow_blank=True, max_length=REASON_CHARACTERS)

    def answer(self) -> Answer:
        given = self.validated_data
        return Answer(given.get("score_value"), given.get("score_label") or "", given.get("reason") or "")


class AssignmentSerializer(BodySerializer):
    """The body of an assignment: `count` open items that nobody has, or all; an empty `assignee` releases all."""

    assignee = serializers.CharField(allow_blank=True, max_length=USERNAME_CHARACTERS)
    count = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=1, max_value=MAX_ITEMS)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        name, project_id = attrs["assignee"], self.context["project_id"]
        person = get_user_model().objects.filter(username=name).first() if name else None
        if name and (person is None or Right.EDIT not in rights_in(person, project_id)):
            raise serializers.ValidationError({"assignee": "Nobody of this name may score in this project."})
        return attrs


def _bounds(given: dict[str, Any]) -> dict[str, float]:
    """Returns the bounds of a number, by default 1 to 5."""
    lowest = DEFAULT_MINIMUM if given["minimum"] is None else given["minimum"]
    highest = DEFAULT_MAXIMUM if given["maximum"] is None else given["maximum"]
    if lowest >= highest:
        raise serializers.ValidationError({"maximum": "Must be greater than minimum."})
    return {"minimum": lowest, "maximum": highest}


def _require_labels(kind: str, labels: list[str]) -> None:
    if kind != RubricKind.CATEGORY:
        if labels:
            raise serializers.ValidationError({"labels": "Only a rubric of categories has labels."})
        return
    if not 2 <= len(labels) <= MAX_LABELS:
        raise serializers.ValidationError({"labels": f"Must be 2 to {MAX_LABELS} labels."})
    if len(set(labels)) < len(labels):
        raise serializers.ValidationError({"labels": "Each label must be there once."})
