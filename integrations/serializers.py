from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework import serializers

from core.wire.serializers import BodySerializer, StrictSerializer
from integrations.access.checked_deployments import MAX_ENTRIES, MAX_MODEL_CHARACTERS, NUMBERS
from integrations.access.completeness import SECRET_LENGTH, SERVICE_ACCOUNT_LENGTH
from integrations.access.credentials import MASK, extra_names, forwarded_names, is_usable, masked, masked_headers
from integrations.connectivity.outcomes import ConnectionOutcome
from integrations.models import MAX_PRIORITY, MAX_VENDOR_LIMIT, MAX_WEIGHT, NAME_LENGTH, ProviderIntegration
from integrations.pricing.serializers import PriceField
from integrations.providers.base import AMBIENT
from integrations.services import Default, IntegrationChange

OPTIONS = ("api_version", "deployment", "region", "project", "location", "responses_models", "credentials")
SECRET_EXTRA = ("access_key_id", "secret_access_key", "session_token")


class IntegrationSerializer(serializers.Serializer[Any]):
    """The fields of an integration in answers. `api_key` is masked, and a masked key that is sent back leaves the
    stored key unchanged."""

    def to_representation(self, instance: ProviderIntegration) -> dict[str, Any]:
        shown = {
            "name": instance.name,
            "provider": instance.provider,
            "api_key": masked(instance),
            "enabled": instance.enabled,
            "own_account": instance.own_account,
            "base_url": instance.base_url,
            "usable": is_usable(instance),
            "last_test": _last_test(instance),
            "created_at": serializers.DateTimeField().to_representation(instance.created_at),
            "updated_at": serializers.DateTimeField().to_representation(instance.updated_at),
        }
        shown |= {
            "default_parameters": instance.default_parameters,
            "forced_parameters": instance.forced_parameters,
            "extra_headers": masked_headers(instance),
            "forward_headers": list(forwarded_names(instance)),
        }
        shown |= {name: getattr(instance, name) for name in NUMBERS}
        shown |= {"models": instance.served_models, "prices": instance.own_prices}
        shown |= {name: instance.options[name] for name in OPTIONS if name in instance.options}
        return shown | dict.fromkeys(extra_names(instance), MASK)


class ServedModelSerializer(StrictSerializer):
    model = serializers.CharField(max_length=MAX_MODEL_CHARACTERS, help_text="The name in requests.")
    deployment = serializers.CharField(
        required=False, allow_blank=True, max_length=MAX_MODEL_CHARACTERS, help_text="This deployment's name of it."
    )


class OwnPriceSerializer(StrictSerializer):
    model = serializers.CharField(max_length=MAX_MODEL_CHARACTERS, help_text="The name in requests.")
    input_cost_per_1m = PriceField()
    output_cost_per_1m = PriceField()
    cache_read_cost_per_1m = PriceField(required=False, allow_null=True)
    cache_write_cost_per_1m = PriceField(required=False, allow_null=True)


class IntegrationChangeSerializer(BodySerializer):
    """The fields that PUT takes: a field that is left out stays unchanged, an empty one is cleared."""

    written_back = frozenset({"usable", "last_test", "created_at", "updated_at"})

    name = serializers.CharField(required=False, max_length=NAME_LENGTH, help_text="The one of the path.")
    provider = serializers.CharField(required=False, max_length=50, help_text="The kind; it does not change.")
    # `api_key` holds an API key, or a Google service account's JSON.
    api_key = serializers.CharField(
        required=False, allow_blank=True, max_length=SERVICE_ACCOUNT_LENGTH, write_only=True
    )
    access_key_id = serializers.CharField(required=False, allow_blank=True, max_length=SECRET_LENGTH, write_only=True)
    secret_access_key = serializers.CharField(
        required=False, allow_blank=True, max_length=SECRET_LENGTH, write_only=True
    )
    session_token = serializers.CharField(required=False, allow_blank=True, max_length=SECRET_LENGTH, write_only=True)
    region = serializers.CharField(required=False, max_length=40)
    project = serializers.CharField(required=False, allow_blank=True, max_length=100)
    location = serializers.CharField(required=False, allow_blank=True, max_length=40)
    api_version = serializers.CharField(required=False, max_length=50)
    deployment = serializers.CharField(required=False, max_length=200)
    responses_models = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=500,
        help_text="Beginnings of the names of models that get tools with reasoning by the Responses API, or none.",
    )
    credentials = serializers.ChoiceField(
        required=False,
        allow_blank=True,
        choices=[AMBIENT],
        help_text="The key of the role of the gateway's machine, where the operator allows it; empty: a stored one.",
    )
    base_url = serializers.CharField(required=False, allow_blank=True, max_length=500)
    enabled = serializers.BooleanField(required=False)
    own_account = serializers.BooleanField(
        required=False,
        help_text="No other project uses the account: requests may name files, responses and so on that were made"
        " elsewhere.",
    )
    default_parameters = serializers.DictField(required=False, help_text="Where a request leaves them out.")
    forced_parameters = serializers.DictField(
        required=False, help_text="Whatever a request says; null takes a field out."
    )
    extra_headers = serializers.DictField(
        child=serializers.CharField(), required=False, help_text="Sent to the provider; shown masked."
    )
    forward_headers = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        allow_null=True,
        help_text="Names of the client's headers that are passed on; null: the provider's own list.",
    )

    weight = serializers.IntegerField(
        required=False, min_value=0, max_value=MAX_WEIGHT, help_text="The share among those of its priority."
    )
    priority = serializers.IntegerField(
        required=False, min_value=0, max_value=MAX_PRIORITY, help_text="The lowest comes first."
    )
    rpm = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=MAX_VENDOR_LIMIT, help_text="The vendor's own limit."
    )
    tpm = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=MAX_VENDOR_LIMIT, help_text="The vendor's own limit."
    )
    models = serializers.ListField(
        child=ServedModelSerializer(),
        required=False,
        max_length=MAX_ENTRIES,
        help_text="The models that it serves; empty: all of its kind.",
    )
    prices = serializers.ListField(
        child=OwnPriceSerializer(),
        required=False,
        max_length=MAX_ENTRIES,
        help_text="Its own, before those of the price list.",
    )

    def change(self) -> IntegrationChange:
        return change_of(self.validated_data)


class NewIntegrationSerializer(IntegrationChangeSerializer):
    written_back = frozenset()

    name = serializers.CharField(required=False, max_length=NAME_LENGTH, help_text="Left out: that of the provider.")
    provider = serializers.CharField(max_length=50)


class OutcomeSerializer(serializers.Serializer[ConnectionOutcome]):
    """The outcome of an integration's test. `status` is the provider's HTTP status; `latency_ms` is null when nothing
    was sent."""

    ok = serializers.BooleanField()
    status = serializers.IntegerField(allow_null=True)
    latency_ms = serializers.FloatField(allow_null=True)
    reason = serializers.CharField()
    detail = serializers.CharField()


def change_of(data: Mapping[str, Any]) -> IntegrationChange:
    return IntegrationChange(
        secret=data.get("api_key"),
        enabled=data.get("enabled"),
        own_account=data.get("own_account"),
        base_url=data.get("base_url"),
        options={name: data[name] for name in OPTIONS if name in data} or None,
        secret_extra={name: data[name] for name in SECRET_EXTRA if name in data} or None,
        default_parameters=data.get("default_parameters"),
        forced_parameters=data.get("forced_parameters"),
        extra_headers=data.get("extra_headers"),
        forward_headers=_forwarded(data),
        weight=data.get("weight"),
        priority=data.get("priority"),
        rpm=_limit(data, "rpm"),
        tpm=_limit(data, "tpm"),
        models=data.get("models"),
        prices=data.get("prices"),
    )


def _forwarded(data: Mapping[str, Any]) -> Sequence[str] | Default | None:
    names: Sequence[str] | None = data.get("forward_headers")
    return Default.OF_PROVIDER if names is None and "forward_headers" in data else names


def _limit(data: Mapping[str, Any], name: str) -> int | Default | None:
    value: int | None = data.get(name)
    return Default.OF_PROVIDER if value is None and name in data else value


def _last_test(row: ProviderIntegration) -> dict[str, Any] | None:
    if row.last_tested_at is None:
        return None
    tested_at = serializers.DateTimeField().to_representation(row.last_tested_at)
    return {"tested_at": tested_at, "ok": row.last_test_ok, "reason": row.last_test_reason}
