"""The handlers that delete a session or a request; the views that show them inherit these."""

from __future__ import annotations

from uuid import UUID

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.deletion.services import delete_request, delete_session
from analytics.models import SESSION_ID_CHARACTERS
from analytics.parameters.ids import require_id
from core.openapi import operation
from core.views import ProjectAPIView


class SessionDeletion(ProjectAPIView):
    @operation("deleteSession", "Forget a session and its requests", status=204, errors=[404])
    def delete(self, request: Request, session_id: str) -> Response:
        """The session is hidden from every answer when this returns, and erased within seconds."""
        require_id("session_id", session_id, SESSION_ID_CHARACTERS)
        delete_session(self.project_id, session_id, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class RequestDeletion(ProjectAPIView):
    @operation("deleteRequest", "Forget a request", status=204, errors=[404])
    def delete(self, request: Request, request_id: UUID) -> Response:
        """The request is erased when this returns."""
        delete_request(self.project_id, request_id, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)
