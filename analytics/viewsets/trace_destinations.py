"""The endpoints of trace destinations, the collectors to which a project's spans are exported."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.serializers.trace_destinations import (
    NewTraceDestinationSerializer,
    TraceDestinationChangeSerializer,
    TraceDestinationSerializer,
    TrialOutcomeSerializer,
)
from analytics.trace_export import destinations
from analytics.trace_export.trial import try_destination
from core.api.throttles import ProjectThrottle
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.wire.serializers import EmptyBodySerializer


class TrialThrottle(ProjectThrottle):
    """The limit of tests, which are sent from the gateway's own addresses."""

    scope = "trace_destination_tests"
    rate = "30/min"


class TraceDestinationViewSet(ProjectViewSet):
    lookup_url_kwarg = "destination_id"
    lookup_value_converter = "uuid"

    @operation("listTraceDestinations", "List trace destinations", query=[PAGE], page=TraceDestinationSerializer)
    def list(self, request: Request) -> Response:
        """The collectors that get the spans of the project's requests, by name, and what became of the export."""
        return self.page(destinations.list_destinations(self.project_id), TraceDestinationSerializer)

    @operation(
        "createTraceDestination",
        "Export spans to a collector",
        body=NewTraceDestinationSerializer,
        answer=TraceDestinationSerializer,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """The spans of the requests from now on go there. A project has at most three destinations."""
        given = self.valid_body(NewTraceDestinationSerializer).validated_data
        row = destinations.add_destination(self.project_id, given)
        return Response(TraceDestinationSerializer(row).data, status=status.HTTP_201_CREATED)

    @operation("getTraceDestination", "One trace destination", answer=TraceDestinationSerializer, errors=[404])
    def retrieve(self, request: Request, destination_id: UUID) -> Response:
        return Response(TraceDestinationSerializer(self._row(destination_id)).data)

    @operation(
        "changeTraceDestination",
        "Change a trace destination",
        body=TraceDestinationChangeSerializer,
        answer=TraceDestinationSerializer,
        errors=[404, 409],
    )
    def partial_update(self, request: Request, destination_id: UUID) -> Response:
        """Omitted fields stay as they are. Headers have to be entered again for another host."""
        given = self.valid_body(TraceDestinationChangeSerializer).validated_data
        row = destinations.change_destination(self.project_id, destination_id, given)
        return Response(TraceDestinationSerializer(row).data)

    @operation("deleteTraceDestination", "Remove a trace destination", status=204, errors=[404])
    def destroy(self, request: Request, destination_id: UUID) -> Response:
        """Spans that wait for the collector are dropped."""
        destinations.remove_destination(self.project_id, destination_id)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation(
        "testTraceDestination",
        "Send one span to a destination",
        body=EmptyBodySerializer,
        answer=TrialOutcomeSerializer,
        errors=[404, 429],
    )
    @action(detail=True, methods=["post"], throttle_classes=[TrialThrottle])
    def test(self, request: Request, destination_id: UUID) -> Response:
        """Answers what the collector said. A refusal is a 200 too, since the test was made."""
        self.valid_body(EmptyBodySerializer)
        return Response(TrialOutcomeSerializer(try_destination(self._row(destination_id))).data)

    def _row(self, destination_id: UUID) -> Any:
        return destinations.get_destination(self.project_id, destination_id)
