from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.wire.fields import TimeField
from core.wire.parameters import Parameters
from core.wire.serializers import BodySerializer
from integrations.pricing.entries import DIGITS, MAX_PER_MILLION, PLACES
from integrations.pricing.models import ModelPrice, PricePeriod, PriceSource, PriceSyncLog


class PriceField(serializers.DecimalField):
    """A decimal price, written without the trailing zeros that storing it has added."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            max_digits=DIGITS, decimal_places=PLACES, min_value=Decimal(0), max_value=MAX_PER_MILLION, **options
        )

    def to_representation(self, value: Decimal) -> str:
        return f"{value.normalize():f}"


class CostsSerializer(BodySerializer):
    written_back = frozenset({"provider", "model", "terms", "source", "scope", "updated_at"})

    input_cost_per_1m = PriceField()
    output_cost_per_1m = PriceField()
    # A cached token without a price of its own costs the same as fresh input.
    cache_read_cost_per_1m = PriceField(required=False, allow_null=True)
    cache_write_cost_per_1m = PriceField(required=False, allow_null=True)


class TierSerializer(serializers.Serializer[Any]):
    """A tier of a price. `rates` apply to a whole request that was served at `service_tier` (empty: at any) and whose
    prompt has more than `above_tokens` tokens."""

    service_tier = serializers.CharField(allow_blank=True)
    above_tokens = serializers.IntegerField(min_value=0)
    rates = serializers.DictField(child=PriceField())

    def to_representation(self, instance: Mapping[str, Any]) -> dict[str, Any]:
        return {"service_tier": "", "above_tokens": 0, **instance}


class TermsSerializer(serializers.Serializer[Any]):
    """The terms of a price: `rates` of further token classes in US dollars per 1,000,000 tokens, `fees` in US dollars
    each."""

    rates = serializers.DictField(child=PriceField())
    fees = serializers.DictField(child=PriceField())
    tiers = TierSerializer(many=True)

    def to_representation(self, instance: Mapping[str, Any]) -> dict[str, Any]:
        tiers = [TierSerializer(tier).data for tier in instance.get("tiers", ())]
        return {"rates": instance.get("rates", {}), "fees": instance.get("fees", {}), "tiers": tiers}


class ShownCostsSerializer(serializers.Serializer[Any]):
    provider = serializers.CharField()
    model = serializers.CharField()
    input_cost_per_1m = PriceField(allow_null=True)
    output_cost_per_1m = PriceField(allow_null=True)
    cache_read_cost_per_1m = PriceField(allow_null=True)
    cache_write_cost_per_1m = PriceField(allow_null=True)
    terms = TermsSerializer()
    source = serializers.ChoiceField(choices=PriceSource.choices)  # type: ignore[assignment]  # DRF takes fields off the class
    # The scope is `project` for a price that the project set, and `service` for a price of all projects.
    scope = serializers.SerializerMethodField()

    @extend_schema_field({"type": "string", "enum": ["service", "project"]})
    def get_scope(self, row: ModelPrice | PricePeriod) -> str:
        return "service" if row.project_id is None else "project"


class PriceSerializer(ShownCostsSerializer):
    updated_at = serializers.DateTimeField()


class PeriodSerializer(ShownCostsSerializer):
    valid_from = serializers.DateTimeField()
    valid_until = serializers.DateTimeField(allow_null=True)
    changed_by = serializers.SerializerMethodField()

    def get_changed_by(self, row: PricePeriod) -> str:
        """Returns the actor of a project's own price; prices for all projects name no actor, since operators stay
        private."""
        if row.project_id is None and ":" in row.changed_by and not row.changed_by.startswith("sync:"):
            return "operator"
        return row.changed_by


class PeriodParameters(Parameters):
    at = TimeField(required=False)


class CatalogOutcomeSerializer(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=["read", "not_modified", "failed"])
    models = serializers.IntegerField(required=False, min_value=0)
    refused = serializers.IntegerField(required=False, min_value=0)


class SyncErrorSerializer(serializers.Serializer[Any]):
    source = serializers.CharField(allow_blank=True)  # type: ignore[assignment]  # DRF takes fields off the class
    model = serializers.CharField(allow_blank=True)
    message = serializers.CharField()


class SyncLogSerializer(serializers.ModelSerializer[PriceSyncLog]):
    errors = SyncErrorSerializer(many=True)  # type: ignore[assignment]  # DRF takes fields off the class
    catalogs = serializers.DictField(child=CatalogOutcomeSerializer())

    class Meta:
        model = PriceSyncLog
        fields = [
            "id",
            "status",
            "trigger",
            "started_at",
            "finished_at",
            "added",
            "updated",
            "removed",
            "skipped",
            "errors",
            "catalogs",
        ]
