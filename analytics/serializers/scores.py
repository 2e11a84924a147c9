"""The bodies of the requests that record scores, give feedback on a session, and make a token for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analytics.identifiers import canonical_request_id
from analytics.models import (
    EVALUATOR_CHARACTERS,
    FEEDBACK_CHARACTERS,
    JUDGE_MODEL_CHARACTERS,
    MAX_FEEDBACK,
    MIN_FEEDBACK,
    REASON_CHARACTERS,
    REQUEST_ID_CHARACTERS,
    SCORE_ID_CHARACTERS,
    SCORE_LABEL_CHARACTERS,
    SCORE_NAME_CHARACTERS,
    SESSION_ID_CHARACTERS,
    Score,
    ScoreType,
)
from analytics.queries.latest_requests import UNITS, latest_requests
from analytics.scores.feedback_tokens import DEFAULT_SECONDS, MAX_SECONDS, MIN_SECONDS
from analytics.scores.services import NewScore
from core.errors import PermissionDeniedError, ValidationError
from core.wire.serializers import BodySerializer, StrictSerializer


@extend_schema_field({"type": "integer", "minimum": MIN_FEEDBACK, "maximum": MAX_FEEDBACK})
class FeedbackScoreField(serializers.Field[int, Any, int, Any]):
    """A score that has to be a JSON integer: neither true, nor text, nor 4.0."""

    default_error_messages = {"invalid": f"Must be a whole number from {MIN_FEEDBACK} to {MAX_FEEDBACK}."}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int) or not MIN_FEEDBACK <= data <= MAX_FEEDBACK:
            self.fail("invalid")
        return data

    def to_representation(self, value: int) -> int:
        return value


class NewFeedbackSerializer(BodySerializer):
    """The body of a request with feedback: a score, a text or both, or that an answer was edited; null, an empty text
    and false count as left out."""

    project_id = serializers.UUIDField()
    score = FeedbackScoreField(required=False, allow_null=True)
    text = serializers.CharField(max_length=FEEDBACK_CHARACTERS, required=False, allow_blank=True, allow_null=True)
    request_id = serializers.UUIDField(
        required=False, allow_null=True, help_text="The session's request whose answer it is about."
    )

    edited = serializers.BooleanField(
        required=False,
        allow_null=True,
        help_text="True: the answer to the request of `request_id` was edited before it was used.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        score, text, request_id = attrs.get("score"), attrs.get("text") or "", attrs.get("request_id")
        edited = attrs.get("edited") or False
        if score is None and not text and not edited:
            raise serializers.ValidationError({"score": "Give a score, a text or both."}, code="required")
        if edited and request_id is None:
            raise serializers.ValidationError(
                {"request_id": "Name the request whose answer was edited."}, code="required"
            )
        return {"score": score, "text": text, "request_id": request_id, "edited": edited}


class NewFeedbackTokenSerializer(BodySerializer):
    expires_in = serializers.IntegerField(
        min_value=MIN_SECONDS, max_value=MAX_SECONDS, default=DEFAULT_SECONDS, help_text="In seconds."
    )
    request_id = serializers.UUIDField(
        required=False, allow_null=True, help_text="A request of the session, to whose answer alone the token is bound."
    )


MAX_BATCH = 1000

MAX_NUMBER = 100
_ONE_SUBJECT = "Name one of the three: request_id, session_id or user_id."
_KNOWN_BY_NAME = "Takes a request_id: a score of a session or user is known by its name."
_NO_REQUEST = "Has no stored request of the last 14 days. The record of a request comes some seconds after its answer."
# The value of a category may count anything; the bound keeps sums over many of them finite.
_MAX_CATEGORY = 10**15


@extend_schema_field({"type": ["number", "boolean"]})
class ScoreValueField(serializers.Field[float, Any, float, Any]):
    """A finite JSON number, or true and false, which only a boolean score takes."""

    default_error_messages = {"invalid": "Must be a finite number."}

    def to_internal_value(self, data: Any) -> float:
        if not isinstance(data, int | float):
            self.fail("invalid")
        try:
            finite = math.isfinite(data)
        except OverflowError:
            finite = False
        if not finite:
            self.fail("invalid")
        return data if isinstance(data, bool) else float(data)

    def to_representation(self, value: float) -> float:
        return value


class ScoreItemSerializer(StrictSerializer):
    """The body of a request with a score; null in an optional field counts as left out."""

    project_id = serializers.UUIDField(required=False, allow_null=True)
    request_id = serializers.CharField(
        max_length=REQUEST_ID_CHARACTERS,
        trim_whitespace=False,
        required=False,
        allow_null=True,
        help_text="The request that it is about; or one of the two below.",
    )
    session_id = serializers.CharField(
        max_length=SESSION_ID_CHARACTERS,
        trim_whitespace=False,
        required=False,
        allow_null=True,
        help_text="Stands for the latest stored request of this session, of the last 14 days.",
    )
    user_id = serializers.CharField(
        max_length=SESSION_ID_CHARACTERS,
        trim_whitespace=False,
        required=False,
        allow_null=True,
        help_text="Stands for the latest stored request of this user, of the last 14 days.",
    )
    score_name = serializers.CharField(max_length=SCORE_NAME_CHARACTERS)
    score_value = ScoreValueField()
    score_type = serializers.ChoiceField(choices=ScoreType.choices, required=False, allow_null=True)
    score_label = serializers.CharField(
        max_length=SCORE_LABEL_CHARACTERS, required=False, allow_blank=True, allow_null=True
    )
    reason = serializers.CharField(max_length=REASON_CHARACTERS, required=False, allow_blank=True, allow_null=True)
    evaluator_type = serializers.SlugField(max_length=EVALUATOR_CHARACTERS, required=False, allow_null=True)
    judge_model = serializers.CharField(
        max_length=JUDGE_MODEL_CHARACTERS, required=False, allow_blank=True, allow_null=True
    )
    score_id = serializers.CharField(max_length=SCORE_ID_CHARACTERS, required=False, allow_null=True)

    def validate_request_id(self, value: str | None) -> str | None:
        return None if value is None else canonical_request_id(value)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in attrs.items() if value is not None}
        if sum(name in given for name in ("request_id", *UNITS)) != 1:
            raise serializers.ValidationError({"request_id": _ONE_SUBJECT}, code="required")
        if "score_id" in given and "request_id" not in given:
            raise serializers.ValidationError({"score_id": _KNOWN_BY_NAME})
        problem = _value_problem(given.get("score_type", ScoreType.NUMBER), given["score_value"])
        if problem:
            raise serializers.ValidationError({"score_value": problem})
        return {**given, "score_value": float(given["score_value"])}


class NewScoreSerializer(ScoreItemSerializer):
    project_id = serializers.UUIDField()

    def score(self, project_id: UUID) -> NewScore:
        return new_scores(project_id, {"": self.validated_data})[0]


class ScoreBatchSerializer(BodySerializer):
    project_id = serializers.UUIDField()
    scores: serializers.ListSerializer[Score] = serializers.ListSerializer(
        child=ScoreItemSerializer(), allow_empty=False, max_length=MAX_BATCH
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for place, item in enumerate(attrs["scores"]):
            if item.get("project_id", attrs["project_id"]) != attrs["project_id"]:
                field = f"scores.{place}.project_id"
                problem = "Differs from that of the batch."
                raise PermissionDeniedError(f"{field}: {problem}", code="project_mismatch", details={field: [problem]})
        return attrs

    def new_scores(self, project_id: UUID) -> list[NewScore]:
        items = enumerate(self.validated_data["scores"])
        return new_scores(project_id, {f"scores.{place}.": item for place, item in items})


def new_scores(project_id: UUID, items: Mapping[str, dict[str, Any]], *, refuses: bool = True) -> list[NewScore]:
    """Raises the errors of the store, and ValidationError for a session or user without a request, by its place, or
    leaves these out."""
    latest = {
        column: latest_requests(project_id, column, {item[column] for item in items.values() if column in item})
        for column in UNITS
    }
    scores = []
    for place, item in items.items():
        values = {name: value for name, value in item.items() if name not in ("project_id", *UNITS)}
        column = next((one for one in UNITS if one in item), None)
        if column is not None:
            request_id = latest[column].get(item[column])
            if request_id is None:
                if refuses:
                    raise ValidationError.of_field(f"{place}{column}", _NO_REQUEST)
                continue
            # Sent again, it is the same score, while no further request has come.
            values |= {"request_id": request_id, "score_id": f"{request_id}:{item['score_name']}"}
        scores.append(NewScore(**values))
    return scores


def _value_problem(score_type: str, value: float) -> str:
    """Returns the reason why a score of this type cannot have this value; empty when it can."""
    if score_type == ScoreType.BOOLEAN:
        return "" if value in (0, 1) else "Must be 0 or 1 for a boolean score."
    if isinstance(value, bool):
        return "Must be a number; true and false are for boolean scores."
    if score_type == ScoreType.NUMBER:
        return "" if 0 <= value <= MAX_NUMBER else f"Must be from 0 to {MAX_NUMBER} for a number score."
    return "" if abs(value) <= _MAX_CATEGORY else "Is too large for a category score."
