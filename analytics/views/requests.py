"""The request log."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.queries.requests import get_payload, get_request, list_requests
from analytics.request_parameters import RequestParameters
from analytics.selectors import list_scores_of
from analytics.serializers.requests import request_detail, request_entry
from analytics.serializers.scores import ScoreSerializer
from analytics.shapes import RequestDetail, RequestEntry
from analytics.views.deletion import RequestDeletion
from core.errors import NotFoundError
from core.openapi import PAGE, operation
from core.pagination import page_response, parse_page
from core.views import ProjectAPIView

# The rest is under `scores/request/`.
_MOST_SCORES = 100


class RequestsView(ProjectAPIView):
    @operation("listRequests", "The request log", query=[PAGE, RequestParameters], page=RequestEntry)
    def get(self, request: Request) -> Response:
        """The newest first."""
        page = parse_page(request)
        wanted = RequestParameters(data=request.query_params.dict()).wanted()
        count, rows = list_requests(self.project_id, wanted, limit=page.limit, offset=page.offset)
        return page_response(request, page, count, [request_entry(row) for row in rows])


class RequestView(RequestDeletion):
    @operation("getRequest", "One request, with its bodies and scores", answer=RequestDetail, errors=[404])
    def get(self, request: Request, request_id: UUID) -> Response:
        row = get_request(self.project_id, request_id)
        if row is None:
            raise NotFoundError("There is no such request in this project.", code="request_not_found")
        detail = request_detail(row, get_payload(self.project_id, row))
        scores = list_scores_of(self.project_id, str(request_id))[:_MOST_SCORES]
        return Response({**detail, "scores": ScoreSerializer(scores, many=True).data})
