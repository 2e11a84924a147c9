from __future__ import annotations

from rest_framework import serializers

from core.models import AuditEntry
from core.wire.parameters import RangeParameters
from core.wire.serializers import RowSerializer

_MAX_CHARACTERS = 200


class _Name(serializers.CharField):
    def __init__(self) -> None:
        super().__init__(required=False, allow_blank=True, max_length=_MAX_CHARACTERS)


class AuditParameters(RangeParameters):
    actor = _Name()
    operation = _Name()
    via = serializers.ChoiceField(required=False, choices=AuditEntry.Via.choices)
    object_kind = _Name()
    object_id = _Name()


class AuditEntrySerializer(RowSerializer[AuditEntry]):
    class Meta:
        model = AuditEntry
        fields = [
            "id", "created_at", "actor_kind", "actor_name", "actor_id", "via", "operation", "object_kind", "object_id",
            "object_label", "action", "summary", "changes", "request_id",
        ]  # fmt: skip
