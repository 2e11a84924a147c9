"""The endpoints of sessions and the requests in them."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters import SessionParameters
from analytics.presenters import sessions
from analytics.views.deletion import SessionDeletion
from analytics.wire.requests import RequestEntry
from analytics.wire.sessions import SessionDetail, SessionEntry
from analytics.wire.texts import request_without_texts, session_without_texts
from core.openapi import PAGE, operation
from core.pagination import listing_response, parse_page
from core.views import ProjectAPIView


class SessionsView(ProjectAPIView):
    @operation("listSessions", "List sessions", query=[PAGE, SessionParameters], page=SessionEntry)
    def get(self, request: Request) -> Response:
        page = parse_page(request)
        filters = SessionParameters(data=request.query_params.dict()).to_filter()
        return listing_response(request, page, sessions.sessions(self.project_id, filters, page))


class SessionView(SessionDeletion):
    @operation("getSession", "One session", answer=SessionDetail, errors=[404])
    def get(self, request: Request, session_id: str) -> Response:
        """The session has its latest feedback; all of it is a list of its own. Texts of feedback are null for a reader
        without content."""
        found = sessions.session(self.project_id, session_id)
        return Response(found if self.sees_content else session_without_texts(found))


class SessionRequestsView(ProjectAPIView):
    @operation("listSessionRequests", "Requests of a session", query=[PAGE], page=RequestEntry, errors=[404])
    def get(self, request: Request, session_id: str) -> Response:
        """The requests are listed in the order in which they were made. Previews and the error's message are null for a
        reader without content."""
        page = parse_page(request)
        found = sessions.session_requests(self.project_id, session_id, page)
        return listing_response(request, page, found if self.sees_content else found.shown_as(request_without_texts))
