from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analytics.figures.registry import FIGURES
from core.wire.fields import NumberField, TimeField
from core.wire.serializers import BodySerializer, RowSerializer, StrictSerializer
from gateway.alerts.channels import masked_url
from gateway.figure_alerts.shown import shown_state
from gateway.tables.alert import AlertDelivery
from gateway.tables.figure_alert import (
    ALERT_NAME_CHARACTERS,
    CHANNEL_NAME_CHARACTERS,
    MAX_CHANNELS_OF_ALERT,
    MAX_WINDOW_MINUTES,
    MIN_REPEAT_MINUTES,
    MIN_WINDOW_MINUTES,
    AlertChannel,
    AlertEvent,
    FigureAlert,
)

_MAX_COUNT = 2**31 - 1
_MAX_URL_CHARACTERS, _MAX_EMAILS = 2000, 50
STATES = ("ok", "firing", "no_data", "silenced", "broken")


class AlertChannelSerializer(RowSerializer[AlertChannel]):
    url = serializers.SerializerMethodField(
        help_text="The host of a webhook; what follows it may be a token and is masked."
    )
    emails = serializers.ListField(child=serializers.EmailField(), read_only=True)

    class Meta:
        model = AlertChannel
        fields = ["id", "name", "kind", "url", "emails", "receives_project_alerts", "created_at", "updated_at"]

    def get_url(self, row: AlertChannel) -> str:
        return masked_url(row)


class AlertChannelChangeSerializer(BodySerializer):
    """The fields to change; an omitted one stays as it is, and so does an address that is sent as it was shown."""

    written_back = frozenset({"id", "kind", "created_at", "updated_at"})

    name = serializers.CharField(required=False, max_length=CHANNEL_NAME_CHARACTERS)
    url = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=_MAX_URL_CHARACTERS,
        help_text="The address of a webhook. It is stored encrypted and never shown again.",
    )
    emails = serializers.ListField(
        child=serializers.EmailField(max_length=254), required=False, max_length=_MAX_EMAILS, help_text="Of kind email."
    )
    receives_project_alerts = serializers.BooleanField(
        required=False, help_text="Whether alerts of the month's budget and of rollouts at 100 % go there too."
    )


class NewAlertChannelSerializer(AlertChannelChangeSerializer):
    written_back = frozenset({"id", "created_at", "updated_at"})

    name = serializers.CharField(max_length=CHANNEL_NAME_CHARACTERS)
    kind = serializers.ChoiceField(choices=AlertChannel.Kind.values)


class AlertQuerySerializer(StrictSerializer):
    """The figure that is watched."""

    figure = serializers.ChoiceField(choices=sorted(FIGURES))
    filters = serializers.DictField(
        required=False, default=dict, help_text="Of listRequests, or of the score metrics for figures about scores."
    )


class StoredQuerySerializer(serializers.Serializer[Any]):
    """The figure that is watched; it may be one that is not there any more."""

    figure = serializers.CharField()
    filters = serializers.DictField(help_text="A text each, or a list of several.")


class ChannelNameSerializer(RowSerializer[AlertChannel]):
    class Meta:
        model = AlertChannel
        fields = ["id", "name", "kind"]


class FigureAlertSerializer(RowSerializer[FigureAlert]):
    query = StoredQuerySerializer(read_only=True)
    channels = ChannelNameSerializer(many=True, read_only=True)
    state = serializers.SerializerMethodField(help_text="silenced hides the state below it, which found_state has.")
    found_state = serializers.CharField(source="state", help_text="What the latest look found.")

    class Meta:
        model = FigureAlert
        fields = [
            "id", "name", "query", "condition", "threshold", "window_minutes", "min_requests", "repeat_minutes",
            "channels", "state", "found_state", "state_since", "problem", "value", "value_before", "measured_count",
            "checked_at", "silenced_until", "created_by", "created_at", "updated_at",
        ]  # fmt: skip

    @extend_schema_field(serializers.ChoiceField(choices=STATES))
    def get_state(self, row: FigureAlert) -> str:
        return shown_state(row)


class AlertChangeSerializer(BodySerializer):
    """The fields to change; an omitted one stays as it is."""

    written_back = frozenset(
        {
            *("id", "state", "found_state", "state_since", "problem", "value", "value_before", "measured_count"),
            *("checked_at", "silenced_until", "created_by", "created_at", "updated_at"),
        }
    )

    name = serializers.CharField(required=False, max_length=ALERT_NAME_CHARACTERS)
    query = AlertQuerySerializer(required=False)
    condition = serializers.ChoiceField(
        required=False,
        choices=FigureAlert.Condition.values,
        help_text="above and below compare the figure, the others its change against the same window a week before.",
    )
    threshold = NumberField(
        required=False, help_text="In the unit of the figure, a share from 0 to 1; or a change in percent."
    )
    window_minutes = serializers.IntegerField(
        required=False, min_value=MIN_WINDOW_MINUTES, max_value=MAX_WINDOW_MINUTES
    )
    min_requests = serializers.IntegerField(
        required=False, min_value=0, max_value=_MAX_COUNT, help_text="With fewer in the window there is no data."
    )
    repeat_minutes = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=MIN_REPEAT_MINUTES,
        max_value=MAX_WINDOW_MINUTES,
        help_text="How often the message is repeated while the alert fires; null: never.",
    )
    channels = serializers.ListField(
        child=serializers.UUIDField(), required=False, max_length=MAX_CHANNELS_OF_ALERT, help_text="Ids of channels."
    )


class NewAlertSerializer(AlertChangeSerializer):
    name = serializers.CharField(max_length=ALERT_NAME_CHARACTERS)
    query = AlertQuerySerializer()
    condition = serializers.ChoiceField(choices=FigureAlert.Condition.values)
    threshold = NumberField(help_text="In the unit of the figure, a share from 0 to 1; or a change in percent.")
    window_minutes = serializers.IntegerField(min_value=MIN_WINDOW_MINUTES, max_value=MAX_WINDOW_MINUTES)


class SilenceSerializer(BodySerializer):
    is_needed = True

    until = TimeField(allow_null=True, help_text="Nothing is sent before; null ends the silence.")


class AlertDeliverySerializer(RowSerializer[AlertDelivery]):
    channel = serializers.CharField(source="way", help_text="The name of the channel.")
    kind = serializers.ChoiceField(source="channel", choices=AlertDelivery.Channel.choices)

    class Meta:
        model = AlertDelivery
        fields = ["channel", "kind", "state", "attempts", "delivered_at", "last_error"]


class AlertEventSerializer(RowSerializer[AlertEvent]):
    message = serializers.SerializerMethodField()
    deliveries = AlertDeliverySerializer(many=True, read_only=True)

    class Meta:
        model = AlertEvent
        fields = ["id", "kind", "message", "value", "value_before", "is_silenced", "deliveries", "created_at"]

    def get_message(self, row: AlertEvent) -> str:
        return str(row.content.get("message", ""))
