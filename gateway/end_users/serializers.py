from __future__ import annotations

from rest_framework import serializers

from core.caller_limits import MAX_BUDGET_USD, MAX_CONCURRENT_REQUESTS
from core.keys.serializers import budget_field, count_field
from core.wire.fields import MoneyField
from core.wire.serializers import BodySerializer, RowSerializer
from gateway.tables.end_user import USER_CHARACTERS, EndUserLimit

_FIELDS = ["monthly_budget_usd", "rate_limit_rpm", "rate_limit_tpm", "max_concurrent_requests"]


class EndUserLimitSerializer(RowSerializer[EndUserLimit]):
    monthly_budget_usd = MoneyField(read_only=True, max_value=MAX_BUDGET_USD, allow_null=True)

    class Meta:
        model = EndUserLimit
        fields = ["id", "user_id", *_FIELDS, "created_at", "updated_at"]


class EndUserChangeSerializer(BodySerializer):
    """The limits to change; an omitted one stays as it is."""

    written_back = frozenset({"id", "user_id", "created_at", "updated_at"})

    monthly_budget_usd = budget_field("Per calendar month, UTC;")
    rate_limit_rpm = count_field("Requests per minute;")
    rate_limit_tpm = count_field("Tokens per minute;")
    max_concurrent_requests = count_field("Requests at the same time;", MAX_CONCURRENT_REQUESTS)


class NewEndUserLimitSerializer(EndUserChangeSerializer):
    written_back = frozenset()

    user_id = serializers.CharField(
        max_length=USER_CHARACTERS, trim_whitespace=False, help_text="The `user` or `x-svc-user-id` of requests."
    )


class EndUserParameters(serializers.Serializer[EndUserLimit]):
    user_id = serializers.CharField(
        required=False, default="", allow_blank=True, trim_whitespace=False, help_text="The limits of this user alone."
    )
