"""Sessions and the requests in them."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.answers import sessions as answers
from analytics.parameters import SessionParameters
from analytics.serializers.texts import request_without_texts, session_without_texts
from analytics.shapes import RequestEntry, SessionDetail, SessionEntry
from analytics.views.deletion import SessionDeletion, SessionPathDeletion
from core.openapi import PAGE, operation
from core.pagination import listing_response, parse_page
from core.views import ProjectAPIView


def _session(view: ProjectAPIView, session_id: str) -> Response:
    found = answers.session(view.project_id, session_id)
    return Response(found if view.sees_content else session_without_texts(found))


class SessionsView(ProjectAPIView):
    @operation("listSessions", "List sessions", query=[PAGE, SessionParameters], page=SessionEntry)
    def get(self, request: Request) -> Response:
        page = parse_page(request)
        wanted = SessionParameters(data=request.query_params.dict()).wanted()
        return listing_response(request, page, answers.sessions(self.project_id, wanted, page))


class SessionView(SessionDeletion):
    @operation("getSession", "One session", answer=SessionDetail, errors=[404])
    def get(self, request: Request, session_id: str) -> Response:
        """With the latest feedback; all of it is a list of its own. Its texts are null for a reader without content."""
        return _session(self, session_id)


class SessionRequestsView(SessionPathDeletion):
    path_end = "requests"

    @operation("listSessionRequests", "Requests of a session", query=[PAGE], page=RequestEntry, errors=[404])
    def get(self, request: Request, session_id: str) -> Response:
        """In the order they were made. Previews and the error's message are null for a reader without content."""
        page = parse_page(request)
        found = answers.session_requests(self.project_id, session_id, page)
        if found is None:
            # An id may end like this path.
            return _session(self, f"{session_id}/{self.path_end}")
        return listing_response(request, page, found if self.sees_content else found.shown_as(request_without_texts))
