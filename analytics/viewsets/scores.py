"""The endpoints of scores: recorded one by one or many at once, listed, and of one request."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.models import REQUEST_ID_CHARACTERS, Score
from analytics.parameters.common import require_id
from analytics.scores import selectors, services
from analytics.scores.filters import ScoreFilter
from analytics.serializers.scores import NewScoreSerializer, ScoreBatchSerializer
from analytics.wire.scores import ScoreBatchResult, ScoreEntry, ScoreSerializer, score_entries
from analytics.wire.texts import SCORE_TEXTS, without
from core.api.viewsets import ProjectViewSet
from core.openapi import JSON, PAGE, operation, page_parameters
from core.wire.pagination import MAXIMUM_LIMIT, LimitOffset


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
        """The status is 201 for a new score, and 200 for one that was known by its `score_id`."""
        given = self.valid_body(NewScoreSerializer)
        stored = services.record_score(project_id=self.project_id, score=given.score(), actor=self.actor)
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
        stored = services.record_scores(project_id=self.project_id, scores=given.new_scores(), actor=self.actor)
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
