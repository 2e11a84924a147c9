"""The endpoint of one trace."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.parameters.traces import parse_trace_id
from analytics.presenters import traces
from analytics.wire.texts import trace_without_texts
from analytics.wire.timelines import Trace
from core.api.viewsets import ProjectViewSet
from core.openapi import operation


class TraceViewSet(ProjectViewSet):
    lookup_url_kwarg = "trace_id"
    lookup_value_converter = "str"

    @operation("getTrace", "One trace: its spans and requests as trees, and its logs", answer=Trace, errors=[404])
    def retrieve(self, request: Request, trace_id: str) -> Response:
        """The nodes are listed in the order of a waterfall, depth first and by start: the application's spans and the
        gateway's own. The id has 32 hexadecimal digits; that of a request which joined no trace is the request's.
        Attributes, messages and the bodies of logs are null for a reader without content."""
        found = traces.trace(self.project_id, parse_trace_id(trace_id))
        return Response(found if self.sees_content else trace_without_texts(found))
