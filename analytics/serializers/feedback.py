"""The bodies of the requests that give feedback on a session, and that make a token for it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analytics.models import FEEDBACK_CHARACTERS, MAX_FEEDBACK, MIN_FEEDBACK
from analytics.scores.feedback_tokens import DEFAULT_SECONDS, MAX_SECONDS, MIN_SECONDS
from core.wire.serializers import BodySerializer


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
