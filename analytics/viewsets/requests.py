"""The endpoints of the request log, of the text search in it, and of what an id names."""

from __future__ import annotations

from uuid import UUID

from django.http import StreamingHttpResponse
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.deletion.services import delete_request
from analytics.exports.lines import export_lines, streamed_file
from analytics.parameters.ranges import parse_range
from analytics.parameters.requests import (
    ExportParameters,
    FacetParameters,
    HistogramParameters,
    ListParameters,
    SearchBody,
)
from analytics.presenters import requests, timelines
from analytics.presenters.requests import lookup, search_texts
from analytics.queries.request_facets import RequestFacets, list_facets
from analytics.queries.request_histogram import RequestHistogram
from analytics.queries.request_sorting import RequestSort
from analytics.queries.usage import Interval
from analytics.request_log.record import RequestEntry
from analytics.wire.conversations import RequestConversation
from analytics.wire.requests import RequestDetail, RequestNeighbours
from analytics.wire.search import LookupResults, SearchResults
from analytics.wire.texts import request_without_texts
from core.api.viewsets import ProjectViewSet
from core.errors import ValidationError
from core.lookup.registry import MAX_CHARACTERS
from core.openapi import PAGE, operation
from core.wire.pagination import cursor_response, listing_response, parse_page
from core.wire.parameters import Parameters
from core.wire.shown import shown

_NO_OFFSET = "Is for lists by time without a cursor; the links of any other list have cursors."


class RequestViewSet(ProjectViewSet):
    lookup_url_kwarg = "request_id"
    lookup_value_converter = "uuid"

    @operation("listRequests", "The request log", query=[PAGE, ListParameters], page=RequestEntry)
    def list(self, request: Request) -> Response:
        """The list has the newest first, or another order by `sort`. Its links lead on by `cursor`, however long it is,
        unless `offset` is given. Previews and the error's message are null for a reader without content."""
        page = parse_page(request)
        given = ListParameters(data=request.query_params)
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

    @operation("getRequest", "One request, with its bodies and scores", answer=RequestDetail, errors=[404])
    def retrieve(self, request: Request, request_id: UUID) -> Response:
        """Previews, bodies, attributes, the error's message and the reasons of scores are null for a reader without
        content."""
        found = requests.request(self.project_id, request_id)
        return Response(found if self.sees_content else request_without_texts(found))

    @operation("deleteRequest", "Forget a request", status=204, errors=[404])
    def destroy(self, request: Request, request_id: UUID) -> Response:
        """The request is erased when this returns."""
        delete_request(self.project_id, request_id, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation("requestNeighbours", "The requests before and after one", answer=RequestNeighbours, errors=[404])
    @action(detail=True)
    def neighbours(self, request: Request, request_id: UUID) -> Response:
        """The two are of the same session; of the whole log for a request without a session."""
        return Response(timelines.neighbours(self.project_id, request_id))

    @operation("requestConversation", "What a request and its answer said", answer=RequestConversation, errors=[404])
    @action(detail=True)
    def conversation(self, request: Request, request_id: UUID) -> Response:
        """The turns have one form for all client protocols. Long texts are cut."""
        return Response(requests.conversation(self.project_id, request_id))

    @operation("requestFacets", "Count the values of requests", query=[FacetParameters], answer=RequestFacets)
    @action(detail=False)
    def facets(self, request: Request) -> Response:
        """For each column that has few values, the ten most common ones among the requests that match. With
        `without_own` each is counted without its own filter, so that the values beside the chosen ones are there."""
        given = FacetParameters(data=request.query_params)
        filters = given.to_filter()
        without_own = given.validated_data["without_own"]
        return Response(shown(list_facets(self.project_id, filters, without_own=without_own)))

    @operation("requestHistogram", "Count requests over time", query=[HistogramParameters], answer=RequestHistogram)
    @action(detail=False)
    def histogram(self, request: Request) -> Response:
        """The requests that match in each minute, hour or day of the range, the oldest first."""
        given = HistogramParameters(data=request.query_params)
        filters, interval = given.to_filter(), given.validated_data.get("interval")
        time_range = parse_range(request)
        chosen = Interval(interval) if interval else None
        return Response(shown(requests.histogram(self.project_id, filters, time_range, chosen)))

    @operation(
        "exportRequests",
        "The request log as lines of JSON",
        query=[ExportParameters],
        answer={"type": "string"},
        media_type="application/x-ndjson",
    )
    @action(detail=False)
    def export(self, request: Request) -> StreamingHttpResponse:
        """The answer is `application/x-ndjson`: one request per line, the oldest first. The last line of an export that
        failed is an error."""
        given = ExportParameters(data=request.query_params)
        filters = given.to_filter()
        lines = export_lines(self.project_id, filters, content=given.validated_data["include_content"])
        return streamed_file(self.project_id, lines, "application/x-ndjson", "requests.ndjson")


class SearchViewSet(ProjectViewSet):
    @operation("search", "Search prompts and completions", body=SearchBody, answer=SearchResults)
    def create(self, request: Request) -> Response:
        """The newest matches come first. For older ones send the same request with `end_time` before the time of the
        last match."""
        filters, limit = SearchBody(data=request.data).to_filter_and_limit()
        return Response(search_texts(self.project_id, filters, limit))


class LookupParameters(Parameters):
    q = serializers.CharField(required=False, max_length=MAX_CHARACTERS)


class LookupViewSet(ProjectViewSet):
    @operation("lookup", "Find what an id names", query=[LookupParameters], answer=LookupResults)
    def list(self, request: Request) -> Response:
        """The requests, sessions, users, API keys, prompts and rollouts that have this id or, of the last three, this
        name or the beginning of this key; nothing without `q`. Keys are
        found for administrators."""
        given = self.valid_query(LookupParameters)
        return Response(lookup(self.project_id, given.validated_data.get("q", ""), self.access.rights))
