"""The JSON of trace destinations."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analytics.models import TraceDestination
from analytics.models.trace_destinations import DESTINATION_NAME_CHARACTERS, ENDPOINT_CHARACTERS
from analytics.trace_export.destinations import ExportStatus, masked_headers, status_of
from analytics.trace_export.trial import TrialOutcome
from core.wire.fields import NumberField
from core.wire.serializers import BodySerializer


class ExportStatusSerializer(serializers.Serializer[ExportStatus]):
    """The state of a destination's export, of all hosts together."""

    last_success_at = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField(help_text="What the collector or the connection said last; empty for nothing.")
    last_error_at = serializers.DateTimeField(allow_null=True)
    waiting_spans = serializers.IntegerField()
    oldest_waiting_at = serializers.DateTimeField(allow_null=True)
    sent_spans = serializers.IntegerField(help_text="Taken by the collector.")
    dropped_spans = serializers.IntegerField(help_text="Given up on.")
    rejected_spans = serializers.IntegerField(help_text="Refused by the collector in a batch that it took otherwise.")


class TraceDestinationSerializer(serializers.ModelSerializer[TraceDestination]):
    headers = serializers.SerializerMethodField(help_text="The names, each with a mask as its value.")
    status = serializers.SerializerMethodField()

    class Meta:
        model = TraceDestination
        fields = [
            "id", "name", "endpoint", "headers", "enabled", "sampling_ratio", "include_content", "status", "created_at",
            "updated_at",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.DictField(child=serializers.CharField()))
    def get_headers(self, row: TraceDestination) -> dict[str, str]:
        return masked_headers(row)

    @extend_schema_field(ExportStatusSerializer)
    def get_status(self, row: TraceDestination) -> dict[str, Any]:
        return ExportStatusSerializer(status_of(row)).data


class RatioField(NumberField):
    """A share above 0 up to 1."""

    def to_internal_value(self, data: Any) -> float:
        value = super().to_internal_value(data)
        if not 0 < value <= 1:
            raise serializers.ValidationError("Must be above 0 and at most 1.")
        return value


class TraceDestinationChangeSerializer(BodySerializer):
    """The fields to change; an omitted one stays as it is."""

    written_back = frozenset({"id", "status", "created_at", "updated_at"})

    name = serializers.CharField(required=False, max_length=DESTINATION_NAME_CHARACTERS)
    endpoint = serializers.CharField(
        required=False,
        max_length=ENDPOINT_CHARACTERS,
        help_text="The collector's OTLP/HTTP address; `/v1/traces` is added where it is missing.",
    )
    headers = serializers.DictField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False),
        required=False,
        help_text="Sent with every batch, stored encrypted, shown masked; a masked value keeps the stored one.",
    )
    enabled = serializers.BooleanField(required=False)
    sampling_ratio = RatioField(required=False, help_text="The share of traces that are exported.")
    include_content = serializers.BooleanField(
        required=False, help_text="Whether spans carry the messages of requests and answers."
    )


class NewTraceDestinationSerializer(TraceDestinationChangeSerializer):
    written_back = frozenset()

    name = serializers.CharField(max_length=DESTINATION_NAME_CHARACTERS)
    endpoint = serializers.CharField(
        max_length=ENDPOINT_CHARACTERS,
        help_text="The collector's OTLP/HTTP address; `/v1/traces` is added where it is missing.",
    )


class TrialOutcomeSerializer(serializers.Serializer[TrialOutcome]):
    ok = serializers.BooleanField()
    status = serializers.IntegerField(allow_null=True, help_text="The collector's HTTP status.")
    latency_ms = serializers.FloatField(allow_null=True)
    detail = serializers.CharField(help_text="What the collector said of a span that it did not take.")
    trace_id = serializers.CharField(help_text="That of the span that was sent.")
