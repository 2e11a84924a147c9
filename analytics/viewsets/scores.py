"""The endpoints of scores, of feedback on sessions, and of the tokens with which browsers give it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.errors import FeedbackTokenError
from analytics.models import REQUEST_ID_CHARACTERS, SESSION_ID_CHARACTERS, Score
from analytics.parameters.common import require_id
from analytics.scores import selectors, services
from analytics.scores.feedback_tokens import HEADER, check_token, make_token
from analytics.scores.filters import ScoreFilter
from analytics.scores.named_request import require_request
from analytics.serializers.scores import (
    NewFeedbackSerializer,
    NewFeedbackTokenSerializer,
    NewScoreSerializer,
    ScoreBatchSerializer,
)
from analytics.wire.feedback import (
    FeedbackEntry,
    FeedbackSerializer,
    FeedbackToken,
    ScoreBatchResult,
    ScoreEntry,
    ScoreSerializer,
    feedback_entries,
    score_entries,
)
from analytics.wire.texts import FEEDBACK_TEXTS, SCORE_TEXTS, without
from core.api.viewsets import ProjectViewSet
from core.openapi import JSON, PAGE, operation, page_parameters
from core.rights.scopes import is_public
from core.wire.pagination import MAXIMUM_LIMIT, LimitOffset
from core.wire.parameters import Parameters


class _WholeRequest(LimitOffset):
    """All scores of the request on one page, unless `limit` is given."""

    default_limit = MAXIMUM_LIMIT


class ScoreViewSet(ProjectViewSet):
    filterset_class = ScoreFilter

    @operation("listScores", "List scores", query=[PAGE], page=ScoreEntry)
    def list(self, request: Request) -> Response:
        """The `reason` of each is null for a reader without content."""
        return self._page(selectors.list_scores(self.project_id))

    @operation(
        "recordScore",
        "Record a score",
        body=NewScoreSerializer,
        answer=ScoreEntry,
        status=201,
        also={(200, JSON): ScoreEntry},
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """The status is 201 for a new score, and 200 for one that was known by its `score_id`.

        With `session_id` or `user_id` it is a score of the latest stored request of that session or user, known by its
        name and that request."""
        given = self.valid_body(NewScoreSerializer)
        stored = services.record_score(project_id=self.project_id, score=given.score(self.project_id), actor=self.actor)
        code = status.HTTP_201_CREATED if stored.created else status.HTTP_200_OK
        return Response(ScoreSerializer(stored.row).data, status=code)

    @operation(
        "recordScores",
        "Record many scores at once",
        body=ScoreBatchSerializer,
        answer=ScoreBatchResult,
        status=201,
        errors=[409],
    )
    @action(detail=False, methods=["post"])
    def batch(self, request: Request) -> Response:
        """All scores of the body are recorded, or none. `created` counts the new ones; the others were known by their
        `score_id`."""
        given = self.valid_body(ScoreBatchSerializer)
        scores = given.new_scores(self.project_id)
        stored = services.record_scores(project_id=self.project_id, scores=scores, actor=self.actor)
        body: ScoreBatchResult = {
            "count": len(stored),
            "created": sum(item.created for item in stored),
            "updated": sum(item.changed for item in stored),
            "scores": score_entries(item.row for item in stored),
        }
        return Response(body, status=status.HTTP_201_CREATED)

    @operation(
        "listRequestScores",
        "Scores of a request",
        query=[page_parameters(MAXIMUM_LIMIT)],
        page=ScoreEntry,
        errors=[404],
    )
    @action(
        detail=False,
        url_path="request/<slashed:request_id>",
        filterset_class=None,
        filter_backends=[],
        pagination_class=_WholeRequest,
    )
    def of_request(self, request: Request, request_id: str) -> Response:
        """The `reason` of each is null for a reader without content."""
        require_id("request_id", request_id, REQUEST_ID_CHARACTERS)
        return self._page(selectors.list_scores_of(self.project_id, request_id))

    def _page(self, rows: QuerySet[Score]) -> Response:
        shown = ScoreSerializer(self.rows_of_page(rows), many=True).data
        # The reason of a score may quote the texts that it evaluates.
        return self.get_paginated_response(
            shown if self.sees_content else [without(SCORE_TEXTS, score) for score in shown]
        )


_TOKEN = OpenApiParameter(
    HEADER,
    str,
    OpenApiParameter.HEADER,
    description="The token of the session or the request, for a key with no scope but `feedback:write`.",
)


class FeedbackParameters(Parameters):
    request_id = serializers.UUIDField(required=False)


class FeedbackViewSet(ProjectViewSet):
    # The session id may be unknown, since feedback may arrive before the session's first request is stored.

    @operation(
        "listSessionFeedback",
        "Feedback on a session",
        query=[PAGE, FeedbackParameters],
        page=FeedbackEntry,
        errors=[404],
    )
    def list(self, request: Request, session_id: str) -> Response:
        """The feedback is listed latest first; `request_id` keeps what is about the answer to that request. The `text`
        is null for a reader without content."""
        require_id("session_id", session_id, SESSION_ID_CHARACTERS)
        found, named = selectors.list_feedback(self.project_id, session_id), self.valid_query(FeedbackParameters)
        if request_id := named.validated_data.get("request_id"):
            found = selectors.list_feedback_of_request(self.project_id, session_id, request_id)
        rows = self.rows_of_page(found)
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
        """With `request_id` it is about the answer to that request. A key with no scope but `feedback:write` also needs
        a token of the session or of the request, in `x-svc-feedback-token`."""
        require_id("session_id", session_id, SESSION_ID_CHARACTERS)
        given = self.valid_body(NewFeedbackSerializer)
        request_id = given.validated_data["request_id"]
        if is_public(self.access.scopes):
            check_token(request.headers.get(HEADER, ""), self.project_id, session_id, request_id)
        if request_id is not None:
            require_request(self.project_id, session_id, request_id)
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
        session and no other, or with `request_id` on the answer to this request alone. Such a key makes none itself."""
        require_id("session_id", session_id, SESSION_ID_CHARACTERS)
        if is_public(self.access.scopes):
            raise FeedbackTokenError("A key with no scope but 'feedback:write' makes no tokens.", code="scope_missing")
        given = self.valid_body(NewFeedbackTokenSerializer)
        request_id, seconds = given.validated_data.get("request_id"), given.validated_data["expires_in"]
        if request_id is not None:
            require_request(self.project_id, session_id, request_id)
        token, expires_at = make_token(self.project_id, session_id, seconds=seconds, request_id=request_id)
        body = FeedbackToken(session_id=session_id, request_id=request_id, token=token, expires_at=expires_at)
        return Response(body, status=status.HTTP_201_CREATED)
