"""The endpoints of alerts on figures and of the channels that alerts are sent by."""

from __future__ import annotations

from uuid import UUID

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.throttles import ProjectThrottle
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.serializers import EmptyBodySerializer
from gateway.alerts.channels import add_channel, change_channel, get_channel, list_channels, remove_channel
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


class AlertChannelViewSet(ProjectViewSet):
    lookup_url_kwarg = "channel_id"
    lookup_value_converter = "uuid"

    @operation("listAlertChannels", "List alert channels", query=[PAGE], page=AlertChannelSerializer)
    def list(self, request: Request) -> Response:
        """Where alerts are sent, by name. Of a webhook's address only the host is shown."""
        return self.page(list_channels(self.project_id), AlertChannelSerializer)

    @operation(
        "createAlertChannel",
        "Add an alert channel",
        body=NewAlertChannelSerializer,
        answer=AlertChannelSerializer,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """A webhook that gets the signed JSON, an incoming webhook of Slack, Mattermost or Discord, or addresses of
        e-mail."""
        given = self.valid_body(NewAlertChannelSerializer).validated_data
        row = add_channel(self.project_id, given, actor=self.actor)
        return Response(AlertChannelSerializer(row).data, status=status.HTTP_201_CREATED)

    @operation("getAlertChannel", "One alert channel", answer=AlertChannelSerializer, errors=[404])
    def retrieve(self, request: Request, channel_id: UUID) -> Response:
        return Response(AlertChannelSerializer(get_channel(self.project_id, channel_id)).data)

    @operation(
        "changeAlertChannel",
        "Change an alert channel",
        body=AlertChannelChangeSerializer,
        answer=AlertChannelSerializer,
        errors=[404, 409],
    )
    def partial_update(self, request: Request, channel_id: UUID) -> Response:
        """Omitted fields stay as they are, and so does an address that is sent masked. The kind does not change."""
        given = self.valid_body(AlertChannelChangeSerializer).validated_data
        row = change_channel(self.project_id, channel_id, given, actor=self.actor)
        return Response(AlertChannelSerializer(row).data)

    @operation("deleteAlertChannel", "Remove an alert channel", status=204, errors=[404])
    def destroy(self, request: Request, channel_id: UUID) -> Response:
        """Its alerts keep their other channels; messages that wait for it are given up."""
        remove_channel(self.project_id, channel_id, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class FigureAlertViewSet(ProjectViewSet):
    lookup_url_kwarg = "alert_id"
    lookup_value_converter = "uuid"

    @operation("listAlerts", "List alerts", query=[PAGE], page=FigureAlertSerializer)
    def list(self, request: Request) -> Response:
        """The alerts on figures by name, with what the latest look found."""
        return self.page(services.list_alerts(self.project_id), FigureAlertSerializer)

    @operation(
        "createAlert",
        "Alert on a figure",
        body=NewAlertSerializer,
        answer=FigureAlertSerializer,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """The figure is looked at within half a minute, and again and again."""
        given = self.valid_body(NewAlertSerializer).validated_data
        row = services.create_alert(self.project_id, given, actor=self.actor)
        return Response(FigureAlertSerializer(row).data, status=status.HTTP_201_CREATED)

    @operation("getAlert", "One alert", answer=FigureAlertSerializer, errors=[404])
    def retrieve(self, request: Request, alert_id: UUID) -> Response:
        return Response(FigureAlertSerializer(services.get_alert(self.project_id, alert_id)).data)

    @operation(
        "changeAlert",
        "Change an alert",
        body=AlertChangeSerializer,
        answer=FigureAlertSerializer,
        errors=[404, 409],
    )
    def partial_update(self, request: Request, alert_id: UUID) -> Response:
        """Omitted fields stay as they are. The figure is looked at anew within half a minute."""
        given = self.valid_body(AlertChangeSerializer).validated_data
        row = services.change_alert(self.project_id, alert_id, given, actor=self.actor)
        return Response(FigureAlertSerializer(row).data)

    @operation("deleteAlert", "Delete an alert", status=204, errors=[404])
    def destroy(self, request: Request, alert_id: UUID) -> Response:
        """Its history goes with it."""
        services.delete_alert(self.project_id, alert_id, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation("listAlertEvents", "The history of an alert", query=[PAGE], page=AlertEventSerializer, errors=[404])
    @action(detail=True, methods=["get"])
    def events(self, request: Request, alert_id: UUID) -> Response:
        """What happened, the latest first, and what became of each message; the last 500 are kept."""
        row = services.get_alert(self.project_id, alert_id)
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
