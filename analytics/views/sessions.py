"""Sessions and the requests in them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from analytics import selectors
from analytics.parameters import SessionParameters
from analytics.queries.session_pages import SessionFilter
from analytics.queries.session_requests import list_session_requests
from analytics.queries.sessions import get_session, list_sessions
from analytics.serializers.feedback import feedback_entry
from analytics.serializers.requests import request_entry
from analytics.serializers.sessions import session_detail, session_entry
from analytics.shapes import RequestEntry, SessionDetail, SessionEntry
from analytics.views.deletion import SessionDeletion
from core.errors import NotFoundError
from core.openapi import PAGE, operation
from core.pagination import MAXIMUM_LIMIT, page_response, parse_page
from core.views import ProjectAPIView


class SessionsView(ProjectAPIView):
    @operation("listSessions", "List sessions", query=[PAGE, SessionParameters], page=SessionEntry)
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
        scores = selectors.feedback_scores(self.project_id, [row.session_id for row in rows])
        return page_response(request, page, count, [session_entry(row, scores.get(row.session_id)) for row in rows])


class SessionView(SessionDeletion):
    @operation("getSession", "One session", answer=SessionDetail, errors=[404])
    def get(self, request: Request, session_id: str) -> Response:
        """With the latest feedback; all of it is a list of its own."""
        return Response(_detail(self.project_id, session_id))


class SessionRequestsView(ProjectAPIView):
    @operation("listSessionRequests", "Requests of a session", query=[PAGE], page=RequestEntry, errors=[404])
    def get(self, request: Request, session_id: str) -> Response:
        """In the order they were made."""
        page = parse_page(request)
        found = list_session_requests(self.project_id, session_id, limit=page.limit, offset=page.offset)
        if found is None:
            # An id may end like this path.
            return Response(_detail(self.project_id, f"{session_id}/requests"))
        count, rows = found
        return page_response(request, page, count, [request_entry(row) for row in rows])


def _detail(project_id: UUID, session_id: str) -> dict[str, Any]:
    row = get_session(project_id, session_id)
    if row is None:
        raise NotFoundError("There is no such session in this project.", code="session_not_found")
    score = selectors.feedback_scores(project_id, [session_id]).get(session_id)
    feedback = selectors.list_feedback(project_id, session_id)[:MAXIMUM_LIMIT]
    return session_detail(row, score, [feedback_entry(item) for item in feedback])
