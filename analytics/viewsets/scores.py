"""The endpoints of scores: recorded one by one or many at once, listed, and of one request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from analytics.models import REQUEST_ID_CHARACTERS
from analytics.parameters.ids import require_id
from analytics.scores import selectors, services
from analytics.scores.filters import ScoreFilter
from analytics.serializers.scores import NewScoreSerializer, ScoreBatchSerializer
from analytics.wire.scores import ScoreBatchResult, ScoreEntry, ScoreSerializer, score_entries
from analytics.wire.texts import SCORE_TEXTS, without
from core.openapi import JSON, PAGE, operation, page_parameters
from core.views import ProjectAPIView
from core.wire.pagination import MAXIMUM_LIMIT, LimitOffset

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from analytics.models import Score

    ScoreViews = GenericAPIView[Score]
else:
    ScoreViews = GenericAPIView


class _WholeRequest(LimitOffset):
    default_limit = MAXIMUM_LIMIT


class _ScoreListView(ProjectAPIView, ScoreViews):
    serializer_class = ScoreSerializer

    def page(self, rows: QuerySet[Score]) -> Response:
        page = self.paginate_queryset(rows)
        shown = self.get_serializer(page, many=True).data
        if not self.sees_content:
            # The reason of a score may quote the texts that it evaluates.
            shown = [without(SCORE_TEXTS, score) for score in shown]
        return self.get_paginated_response(shown)


class ScoresView(_ScoreListView):
    filterset_class = ScoreFilter

    @override
    def get_queryset(self) -> QuerySet[Score]:
        return selectors.list_scores(self.project_id)

    @operation("listScores", "List scores", query=[PAGE], page=ScoreEntry)
    def get(self, request: Request) -> Response:
        """The `reason` of each is null for a reader without content."""
        return self.page(self.filter_queryset(self.get_queryset()))

    @operation(
        "recordScore",
        "Record a score",
        body=NewScoreSerializer,
        answer=ScoreEntry,
        status=201,
        also={(200, JSON): ScoreEntry},
        errors=[409],
    )
    def post(self, request: Request) -> Response:
        """The status is 201 for a new score, and 200 for one that was known by its `score_id`."""
        given = NewScoreSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        stored = services.record_score(project_id=self.project_id, score=given.score(), actor=self.actor)
        code = status.HTTP_201_CREATED if stored.created else status.HTTP_200_OK
        return Response(ScoreSerializer(stored.row).data, status=code)


class RequestScoresView(_ScoreListView):
    """The list has all scores of the request on one page, unless `limit` is given."""

    filter_backends: list[Any] = []
    pagination_class = _WholeRequest

    @operation(
        "listRequestScores",
        "Scores of a request",
        query=[page_parameters(MAXIMUM_LIMIT)],
        page=ScoreEntry,
        errors=[404],
    )
    def get(self, request: Request, request_id: str) -> Response:
        """The `reason` of each is null for a reader without content."""
        require_id("request_id", request_id, REQUEST_ID_CHARACTERS)
        return self.page(selectors.list_scores_of(self.project_id, request_id))


class ScoreBatchView(ProjectAPIView):
    @operation(
        "recordScores",
        "Record many scores at once",
        body=ScoreBatchSerializer,
        answer=ScoreBatchResult,
        status=201,
        errors=[409],
    )
    def post(self, request: Request) -> Response:
        """All scores of the body are recorded, or none. `created` counts the new ones; the others were known by their
        `score_id`."""
        given = ScoreBatchSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        stored = services.record_scores(project_id=self.project_id, scores=given.new_scores(), actor=self.actor)
        body: ScoreBatchResult = {
            "count": len(stored),
            "created": sum(item.created for item in stored),
            "updated": sum(item.changed for item in stored),
            "scores": score_entries(item.row for item in stored),
        }
        return Response(body, status=status.HTTP_201_CREATED)
