"""The endpoints of trace destinations, the collectors to which a project's spans are exported."""

from __future__ import annotations

from uuid import UUID

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.serializers.trace_destinations import (
    NewTraceDestinationSerializer,
    TraceDestinationChangeSerializer,
    TraceDestinationSerializer,
    TrialOutcomeSerializer,
)
from analytics.trace_export.destinations import DESTINATIONS
from analytics.trace_export.trial import try_destination
from core.api.throttles import ProjectThrottle
from core.openapi import operation
from core.resources.viewsets import Operation, ResourceViewSet
from core.wire.serializers import EmptyBodySerializer


class TrialThrottle(ProjectThrottle):
    """The limit of tests, which are sent from the gateway's own addresses."""

    scope = "trace_destination_tests"
    rate = "30/min"


class TraceDestinationViewSet(ResourceViewSet):
    lookup_url_kwarg = "destination_id"
    lookup_value_converter = "uuid"
    noun = "TraceDestination"
    resource = DESTINATIONS
    shown = TraceDestinationSerializer
    new = NewTraceDestinationSerializer
    changed = TraceDestinationChangeSerializer
    operations = {
        "list": Operation(
            "List trace destinations",
            "The collectors that get the spans of the project's requests, by name, and what became of the export.",
        ),
        "create": Operation(
            "Export spans to a collector",
            "The spans of the requests from now on go there. A project has at most three destinations.",
        ),
        "retrieve": Operation("One trace destination"),
        "partial_update": Operation(
            "Change a trace destination",
            "Omitted fields stay as they are. Headers have to be entered again for another host.",
        ),
        "destroy": Operation("Remove a trace destination", "Spans that wait for the collector are dropped."),
    }

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
        return Response(
            TrialOutcomeSerializer(try_destination(self.resource.get(self.project_id, destination_id))).data
        )
