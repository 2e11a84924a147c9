"""The endpoints of figures about the requests of a filter."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.ranges import parse_range
from analytics.parameters.requests import HistogramParameters, RequestParameters
from analytics.presenters import request_figures
from analytics.queries.usage import Interval
from analytics.wire.request_figures import RequestFacets, RequestHistogram
from core.openapi import operation
from core.views import ProjectAPIView


class RequestFacetsView(ProjectAPIView):
    @operation("requestFacets", "Count the values of requests", query=[RequestParameters], answer=RequestFacets)
    def get(self, request: Request) -> Response:
        """For each column that has few values the ten commonest ones among the requests that match."""
        filters = RequestParameters(data=request.query_params.dict()).to_filter()
        return Response(request_figures.facets(self.project_id, filters))


class RequestHistogramView(ProjectAPIView):
    @operation("requestHistogram", "Count requests over time", query=[HistogramParameters], answer=RequestHistogram)
    def get(self, request: Request) -> Response:
        """The requests that match in each minute, hour or day of the range, the oldest first."""
        given = HistogramParameters(data=request.query_params.dict())
        filters, interval = given.to_filter(), given.validated_data.get("interval")
        time_range = parse_range(request)
        chosen = Interval(interval) if interval else None
        return Response(request_figures.histogram(self.project_id, filters, time_range, chosen))
