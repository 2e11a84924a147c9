"""The request log."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.answers import requests as answers
from analytics.request_parameters import RequestParameters
from analytics.shapes import RequestDetail, RequestEntry
from analytics.views.deletion import RequestDeletion
from core.openapi import PAGE, operation
from core.pagination import listing_response, parse_page
from core.views import ProjectAPIView


class RequestsView(ProjectAPIView):
    @operation("listRequests", "The request log", query=[PAGE, RequestParameters], page=RequestEntry)
    def get(self, request: Request) -> Response:
        """The newest first."""
        page = parse_page(request)
        wanted = RequestParameters(data=request.query_params.dict()).wanted()
        return listing_response(request, page, answers.requests(self.project_id, wanted, page))


class RequestView(RequestDeletion):
    @operation("getRequest", "One request, with its bodies and scores", answer=RequestDetail, errors=[404])
    def get(self, request: Request, request_id: UUID) -> Response:
        return Response(answers.request(self.project_id, request_id))
