from __future__ import annotations

from uuid import UUID

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.throttles import ProjectThrottle
from core.openapi import PAGE, operation
from core.resources.viewsets import Operation, ResourceViewSet
from core.wire.serializers import EmptyBodySerializer
from gateway.alerts.channels import CHANNELS
from gateway.figure_alerts import services
from gateway.figure_alerts.serializers import (
    AlertChangeSerializer,
    AlertChannelChangeSerializer,
    AlertChannelSerializer,
    AlertEventSerializer,
    FigureAlertSerializer,
    NewAlertChannelSerializer,
    NewAlertSerializer,
    SilenceSerializer,
)


class AlertTestThrottle(ProjectThrottle):
    """The limit of tests, which are sent from the gateway's own addresses."""

    scope = "alert_tests"
    rate = "30/min"


class AlertChannelViewSet(ResourceViewSet):
    lookup_url_kwarg = "channel_id"
    lookup_value_converter = "uuid"
    noun = "AlertChannel"
    resource = CHANNELS
    shown = AlertChannelSerializer
    new = NewAlertChannelSerializer
    changed = AlertChannelChangeSerializer
    operations = {
        "list": Operation(
            "List alert channels", "Where alerts are sent, by name. Of a webhook's address only the host is shown."
        ),
        "create": Operation(
            "Add an alert channel",
            "A webhook that gets the signed JSON, an incoming webhook of Slack, Mattermost or Discord, or e-mail"
            " addresses.",
        ),
        "retrieve": Operation("One alert channel"),
        "partial_update": Operation(
            "Change an alert channel",
            "Omitted fields stay as they are, and so does an address that is sent masked. The kind does not change.",
        ),
        "destroy": Operation(
            "Remove an alert channel", "Its alerts keep their other channels; messages that wait for it are given up."
        ),
    }


class FigureAlertViewSet(ResourceViewSet):
    lookup_url_kwarg = "alert_id"
    lookup_value_converter = "uuid"
    noun = "Alert"
    resource = services.ALERTS
    shown = FigureAlertSerializer
    new = NewAlertSerializer
    changed = AlertChangeSerializer
    operations = {
        "list": Operation("List alerts", "The alerts on figures by name, with what the latest look found."),
        "create": Operation("Alert on a figure", "The figure is looked at within half a minute, and again and again."),
        "retrieve": Operation("One alert"),
        "partial_update": Operation(
            "Change an alert", "Omitted fields stay as they are. The figure is looked at anew within half a minute."
        ),
        "destroy": Operation("Delete an alert", "Its history goes with it."),
    }

    @operation("listAlertEvents", "The history of an alert", query=[PAGE], page=AlertEventSerializer, errors=[404])
    @action(detail=True, methods=["get"])
    def events(self, request: Request, alert_id: UUID) -> Response:
        """What happened, the latest first, and what became of each message; the last 500 are kept."""
        row = services.ALERTS.get(self.project_id, alert_id)
        return self.page(services.list_events(row), AlertEventSerializer)

    @operation("silenceAlert", "Silence an alert", body=SilenceSerializer, answer=FigureAlertSerializer, errors=[404])
    @action(detail=True, methods=["post"])
    def silence(self, request: Request, alert_id: UUID) -> Response:
        """The figure is looked at as before, and nothing is sent. What the receivers do not know when the silence ends
        is sent then."""
        until = self.valid_body(SilenceSerializer).validated_data["until"]
        row = services.silence_alert(self.project_id, alert_id, until, actor=self.actor)
        return Response(FigureAlertSerializer(row).data)

    @operation(
        "testAlert",
        "Send a test message",
        body=EmptyBodySerializer,
        answer=AlertEventSerializer,
        errors=[404, 429],
    )
    @action(detail=True, methods=["post"], throttle_classes=[AlertTestThrottle])
    def test(self, request: Request, alert_id: UUID) -> Response:
        """Sends one message, marked as a test, by each channel of the alert, and answers what became of it. A refusal
        is a 200 too, since the test was made; it is not repeated."""
        self.valid_body(EmptyBodySerializer)
        event = services.send_test(self.project_id, alert_id, actor=self.actor)
        return Response(AlertEventSerializer(event).data)
