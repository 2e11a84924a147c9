"""Sessions and the requests in them."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters import SessionParameters
from analytics.queries.requests import RequestFilter, list_requests
from analytics.queries.sessions import SessionFilter, SessionRow, get_session, list_sessions
from analytics.serializers import request_entry, session_detail, session_entry
from core.errors import NotFoundError
from core.pagination import page_response, parse_page
from core.views import ProjectAPIView


class SessionsView(ProjectAPIView):
    def get(self, request: Request) -> Response:
        page = parse_page(request)
        given = SessionParameters(data=request.query_params.dict())
        given.is_valid(raise_exception=True)
        values = given.validated_data
        wanted = SessionFilter(
            user_id=values.get("user_id", ""),
            name_pattern=values.get("name_pattern", ""),
            start=values.get("start_date"),
            end=values.get("end_date"),
        )
        count, rows = list_sessions(self.project_id, wanted, limit=page.limit, offset=page.offset)
        return page_response(request, page, count, [session_entry(row) for row in rows])


class SessionView(ProjectAPIView):
    def get(self, request: Request, session_id: str) -> Response:
        return Response(session_detail(_find(self.project_id, session_id)))


class SessionRequestsView(ProjectAPIView):
    def get(self, request: Request, session_id: str) -> Response:
        """In the order they were made."""
        page = parse_page(request)
        _find(self.project_id, session_id)
        wanted = RequestFilter(session_id=session_id)
        count, rows = list_requests(self.project_id, wanted, limit=page.limit, offset=page.offset, oldest_first=True)
        return page_response(request, page, count, [request_entry(row) for row in rows])


def _find(project_id: UUID, session_id: str) -> SessionRow:
    row = get_session(project_id, session_id)
    if row is None:
        raise NotFoundError("There is no such session in this project.", code="session_not_found")
    return row
