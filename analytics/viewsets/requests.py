"""The endpoints of the request log."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.requests import ListParameters
from analytics.presenters import requests, timelines
from analytics.queries.request_sorting import RequestSort
from analytics.request_log.record import RequestEntry
from analytics.viewsets.deletion import RequestDeletion
from analytics.wire.neighbours import RequestNeighbours
from analytics.wire.request_conversations import RequestConversation
from analytics.wire.requests import RequestDetail
from analytics.wire.texts import request_without_texts
from core.errors import ValidationError
from core.openapi import PAGE, operation
from core.views import ProjectAPIView
from core.wire.pagination import cursor_response, listing_response, parse_page

_NO_OFFSET = "Is for lists by time without a cursor; the links of any other list have cursors."


class RequestsView(ProjectAPIView):
    @operation("listRequests", "The request log", query=[PAGE, ListParameters], page=RequestEntry)
    def get(self, request: Request) -> Response:
        """The list has the newest first, or another order by `sort`. Its links lead on by `cursor`, however long it is,
        unless `offset` is given. Previews and the error's message are null for a reader without content."""
        page = parse_page(request)
        given = ListParameters(data=request.query_params.dict())
        filters, sort, position = given.to_filter(), given.to_sort(), given.to_position()
        if page.offset and (position or not sort.by_time):
            raise ValidationError(f"offset: {_NO_OFFSET}", details={"offset": [_NO_OFFSET]})
        if "offset" in request.query_params and sort.by_time and position is None:
            listing = requests.requests(self.project_id, filters, page, oldest_first=sort is RequestSort.OLDEST)
            return listing_response(
                request, page, listing if self.sees_content else listing.shown_as(request_without_texts)
            )
        found = requests.request_page(self.project_id, filters, sort, page.limit, position)
        return cursor_response(request, page, found if self.sees_content else found.shown_as(request_without_texts))


class RequestView(RequestDeletion):
    @operation("getRequest", "One request, with its bodies and scores", answer=RequestDetail, errors=[404])
    def get(self, request: Request, request_id: UUID) -> Response:
        """Previews, bodies, attributes, the error's message and the reasons of scores are null for a reader without
        content."""
        found = requests.request(self.project_id, request_id)
        return Response(found if self.sees_content else request_without_texts(found))


class RequestNeighboursView(ProjectAPIView):
    @operation("requestNeighbours", "The requests before and after one", answer=RequestNeighbours, errors=[404])
    def get(self, request: Request, request_id: UUID) -> Response:
        """The two are of the same session; of the whole log for a request without a session."""
        return Response(timelines.neighbours(self.project_id, request_id))


class RequestConversationView(ProjectAPIView):
    @operation("requestConversation", "What a request and its answer said", answer=RequestConversation, errors=[404])
    def get(self, request: Request, request_id: UUID) -> Response:
        """The turns have one form for all client protocols. Long texts are cut."""
        return Response(requests.conversation(self.project_id, request_id))
