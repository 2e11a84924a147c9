"""The endpoint of the spans and logs of a session, whether or not it made any request."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.presenters import sessions
from analytics.wire.telemetry import SessionTelemetry
from analytics.wire.texts import telemetry_without_texts
from core.api.viewsets import ProjectViewSet
from core.openapi import operation
from core.openapi.operations import path_parameter


class SessionTelemetryViewSet(ProjectViewSet):
    @operation(
        "sessionTelemetry",
        "Spans and logs of a session",
        query=[path_parameter("project_id", UUID, "The project of the header.")],
        answer=SessionTelemetry,
        errors=[404],
    )
    def retrieve(self, request: Request, project_id: UUID | str, session_id: str) -> Response:
        """Attributes, bodies of logs and messages of statuses are null for a reader without content."""
        found = sessions.telemetry(self.project_id, session_id)
        return Response(found if self.sees_content else telemetry_without_texts(found))
