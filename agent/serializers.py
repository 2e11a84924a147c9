from __future__ import annotations

import json
import math
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agent.models import TITLE_CHARACTERS, Conversation, Message
from agent.worker.limits import MESSAGE_CHARACTERS, PAGE_CHARACTERS, PAGE_DATA_BYTES, PAGE_DATA_DEPTH
from core.wire.serializers import BodySerializer, StrictSerializer


class ConversationSerializer(serializers.ModelSerializer[Conversation]):
    conversation_id = serializers.UUIDField(source="id", read_only=True)
    message_count = serializers.IntegerField(source="last_sequence", read_only=True)
    running = serializers.SerializerMethodField(help_text="Whether the agent is answering in it now.")

    class Meta:
        model = Conversation
        fields = ["conversation_id", "title", "message_count", "running", "created_by", "created_at", "updated_at"]
        read_only_fields = fields

    def get_running(self, row: Conversation) -> bool:
        return row.run_id is not None and row.run_until is not None and row.run_until > timezone.now()


class ConversationMessageSerializer(serializers.ModelSerializer[Message]):
    tool_calls = serializers.ListField(child=serializers.DictField(), read_only=True)
    page_context = serializers.DictField(read_only=True, allow_null=True)

    class Meta:
        model = Message
        fields = [
            "sequence",
            "role",
            "content",
            "tool_calls",
            "tool_call_id",
            "tool_name",
            "is_error",
            "state",
            "error",
            "request_id",
            "page_context",
            "created_at",
        ]
        read_only_fields = fields


class NewConversationSerializer(BodySerializer):
    title = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        allow_null=True,
        max_length=TITLE_CHARACTERS,
        help_text="Without one the first message gives it.",
    )


@extend_schema_field({"type": "object", "additionalProperties": True})
class PageDataField(serializers.Field[dict[str, Any], Any, dict[str, Any], Any]):
    """A JSON object of bounded size and depth."""

    default_error_messages = {
        "invalid": "Expected an object.",
        "depth": f"Nested more than {PAGE_DATA_DEPTH} levels deep.",
        "number": "Holds a number that is out of range.",
        "size": f"Larger than {PAGE_DATA_BYTES} bytes of JSON.",
    }

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("invalid")
        self._check(data)
        if len(json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass")) > PAGE_DATA_BYTES:
            self.fail("size")
        return data

    def _check(self, data: Any) -> None:
        level: list[Any] = [data]
        for _ in range(PAGE_DATA_DEPTH):
            if any(isinstance(item, float) and not math.isfinite(item) for item in level):
                self.fail("number")
            level = [
                inner
                for item in level
                if isinstance(item, dict | list)
                for inner in (item.values() if isinstance(item, dict) else item)
            ]
            if not level:
                return
        self.fail("depth")

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        return value


class PageContextSerializer(StrictSerializer):
    page = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=PAGE_CHARACTERS,
        help_text="Which page the user looks at.",
    )
    data = PageDataField(  # type: ignore[assignment]  # the class keeps fields apart from its property `data`
        required=False, help_text=f"What it shows: an object of at most {PAGE_DATA_BYTES} bytes."
    )


def not_blank(text: str) -> None:
    if not text.strip():
        raise serializers.ValidationError("This field may not be blank.")


class ChatSerializer(BodySerializer):
    conversation_id = serializers.UUIDField(
        required=False, allow_null=True, default=None, help_text="Left out: a new conversation begins."
    )
    message = serializers.CharField(
        max_length=MESSAGE_CHARACTERS, trim_whitespace=False, validators=[not_blank], help_text="What the user says."
    )
    page_context = PageContextSerializer(required=False, allow_null=True, default=None)
