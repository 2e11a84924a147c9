"""The endpoint of the feedback that people give on a session."""

from __future__ import annotations

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from analytics import selectors, services
from analytics.models import SESSION_ID_CHARACTERS
from analytics.paths import require_id
from analytics.serializers.feedback import NewFeedbackSerializer
from analytics.wire.feedback import FeedbackEntry, FeedbackSerializer, feedback_entries
from analytics.wire.texts import FEEDBACK_TEXTS, without
from core.openapi import PAGE, operation
from core.pagination import LimitOffset
from core.views import ProjectAPIView


class SessionFeedbackView(ProjectAPIView):
    """The session id may be unknown, since feedback may arrive before the session's first request is stored."""

    @operation("listSessionFeedback", "Feedback on a session", query=[PAGE], page=FeedbackEntry, errors=[404])
    def get(self, request: Request, session_id: str) -> Response:
        """The feedback is listed latest first. The `text` is null for a reader without content."""
        require_id("session_id", session_id, SESSION_ID_CHARACTERS)
        paginator = LimitOffset()
        rows = paginator.paginate_queryset(selectors.list_feedback(self.project_id, session_id), request, self)
        shown = feedback_entries(rows)
        if not self.sees_content:
            return paginator.get_paginated_response([without(FEEDBACK_TEXTS, item) for item in shown])
        return paginator.get_paginated_response(shown)

    @operation(
        "addSessionFeedback",
        "Give feedback on a session",
        body=NewFeedbackSerializer,
        answer=FeedbackSerializer,
        status=201,
        errors=[404],
    )
    def post(self, request: Request, session_id: str) -> Response:
        require_id("session_id", session_id, SESSION_ID_CHARACTERS)
        given = NewFeedbackSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        row = services.record_feedback(
            project_id=self.project_id, session_id=session_id, actor=self.actor, **given.validated_data
        )
        return Response(FeedbackSerializer(row).data, status=status.HTTP_201_CREATED)
