"""Wire shapes of the audit log."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.audit.selectors import AuditFilter
from core.models import AuditEntry
from core.wire.fields import TimeField
from core.wire.parameters import Parameters

_MAX_CHARACTERS = 200


class _Name(serializers.CharField):
    def __init__(self) -> None:
        super().__init__(required=False, allow_blank=True, max_length=_MAX_CHARACTERS)


class AuditParameters(Parameters):
    actor = _Name()
    operation = _Name()
    via = serializers.ChoiceField(required=False, choices=AuditEntry.Via.choices)
    object_kind = _Name()
    object_id = _Name()
    start_date = TimeField(required=False)
    end_date = TimeField(required=False, end_of_day=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        start, end = attrs.get("start_date"), attrs.get("end_date")
        if start and end and start > end:
            raise serializers.ValidationError({"end_date": "Must not be before start_date."})
        return attrs

    def to_filter(self) -> AuditFilter:
        self.is_valid(raise_exception=True)
        values = dict(self.validated_data)
        start, end = values.pop("start_date", None), values.pop("end_date", None)
        return AuditFilter(**values, start=start, end=end)


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    class Meta:
        model = AuditEntry
        fields = [
            "id", "created_at", "actor_kind", "actor_name", "actor_id", "via", "operation", "object_kind", "object_id",
            "object_label", "action", "summary", "changes", "request_id",
        ]  # fmt: skip
        read_only_fields = fields
