"""The endpoints of the feedback that people give on a session, and of the tokens with which browsers give it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.errors import FeedbackTokenError
from analytics.models import SESSION_ID_CHARACTERS
from analytics.parameters.common import require_id
from analytics.scores import selectors, services
from analytics.scores.feedback_tokens import HEADER, check_token, make_token
from analytics.serializers.feedback import NewFeedbackSerializer, NewFeedbackTokenSerializer
from analytics.wire.feedback import FeedbackEntry, FeedbackSerializer, FeedbackToken, feedback_entries
from analytics.wire.texts import FEEDBACK_TEXTS, without
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.rights.scopes import is_public

_TOKEN = OpenApiParameter(
    HEADER,
    str,
    OpenApiParameter.HEADER,
    description="The session's token, for a key with no scope but `feedback:write`.",
)


class FeedbackViewSet(ProjectViewSet):
    # The session id may be unknown, since feedback may arrive before the session's first request is stored.

    @operation("listSessionFeedback", "Feedback on a session", query=[PAGE], page=FeedbackEntry, errors=[404])
    def list(self, request: Request, session_id: str) -> Response:
        """The feedback is listed latest first. The `text` is null for a reader without content."""
        require_id("session_id", session_id, SESSION_ID_CHARACTERS)
        rows = self.rows_of_page(selectors.list_feedback(self.project_id, session_id))
        shown: Sequence[Any] = feedback_entries(rows)
        if not self.sees_content:
            shown = [without(FEEDBACK_TEXTS, item) for item in shown]
        return self.get_paginated_response(shown)

    @operation(
        "addSessionFeedback",
        "Give feedback on a session",
        query=[_TOKEN],
        body=NewFeedbackSerializer,
        answer=FeedbackSerializer,
        status=201,
        errors=[404],
    )
    def create(self, request: Request, session_id: str) -> Response:
        """A key with no scope but `feedback:write` also needs the session's token, in `x-svc-feedback-token`."""
        require_id("session_id", session_id, SESSION_ID_CHARACTERS)
        if is_public(self.access.scopes):
            check_token(request.headers.get(HEADER, ""), self.project_id, session_id)
        given = self.valid_body(NewFeedbackSerializer)
        row = services.record_feedback(
            project_id=self.project_id, session_id=session_id, actor=self.actor, **given.validated_data
        )
        return Response(FeedbackSerializer(row).data, status=status.HTTP_201_CREATED)


class FeedbackTokenViewSet(ProjectViewSet):
    @operation(
        "createFeedbackToken",
        "Make a token for feedback on a session",
        body=NewFeedbackTokenSerializer,
        answer=FeedbackToken,
        status=201,
        errors=[404],
    )
    def create(self, request: Request, session_id: str) -> Response:
        """Makes a token with which a browser, that has a key with no scope but `feedback:write`, gives feedback on this
        session and no other. Such a key makes none itself."""
        require_id("session_id", session_id, SESSION_ID_CHARACTERS)
        if is_public(self.access.scopes):
            raise FeedbackTokenError("A key with no scope but 'feedback:write' makes no tokens.", code="scope_missing")
        given = self.valid_body(NewFeedbackTokenSerializer)
        token, expires_at = make_token(self.project_id, session_id, seconds=given.validated_data["expires_in"])
        body: FeedbackToken = {"session_id": session_id, "token": token, "expires_at": expires_at}
        return Response(body, status=status.HTTP_201_CREATED)
