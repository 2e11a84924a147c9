"""The endpoints of sessions, of the requests in them, and of single traces."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.deletion.services import delete_session
from analytics.models import SESSION_ID_CHARACTERS
from analytics.parameters.common import CursorParameters, require_id
from analytics.parameters.sessions import SessionListParameters
from analytics.presenters import sessions, timelines
from analytics.presenters.timelines import trace
from analytics.queries.session_sorting import LATEST
from analytics.request_log.record import RequestEntry
from analytics.wire.conversations import SessionTranscript
from analytics.wire.sessions import SessionDetail, SessionEntry
from analytics.wire.telemetry import SessionTelemetry
from analytics.wire.texts import lists_without_texts, request_without_texts
from analytics.wire.timelines import SessionTimeline, Trace
from core.api.viewsets import ProjectViewSet
from core.errors import ValidationError
from core.openapi import PAGE, operation
from core.openapi.operations import path_parameter
from core.wire.pagination import MAXIMUM_OFFSET, cursor_response, listing_response, parse_page
from core.wire.parameters import Parameters

_NO_OFFSET = "Is for lists without cursor and sort, and without filters of whole sessions."


class TranscriptParameters(CursorParameters):
    limit = serializers.IntegerField(
        default=sessions.DEFAULT_TRANSCRIPT_LIMIT, min_value=1, max_value=sessions.MAX_TRANSCRIPT_LIMIT
    )

    def values(self) -> dict[str, Any]:
        self.is_valid(raise_exception=True)
        return {"after": self.validated_data.get("cursor"), "limit": self.validated_data["limit"]}


class TimelineParameters(Parameters):
    offset = serializers.IntegerField(default=0, min_value=0, max_value=MAXIMUM_OFFSET)


class SessionViewSet(ProjectViewSet):
    lookup_url_kwarg = "session_id"
    lookup_value_converter = "slashed"

    @operation("listSessions", "List sessions", query=[PAGE, SessionListParameters], page=SessionEntry)
    def list(self, request: Request) -> Response:
        """By default the latest active come first. Other orders, and filters by cost, duration, requests, errors and
        feedback, are of whole sessions; with one of them the links lead on by `cursor`, however long the list is, and
        there is no `offset`."""
        page = parse_page(request)
        filters, sort, after = SessionListParameters(data=request.query_params.dict()).to_whole_filter()
        if filters.is_plain and after is None and sort == LATEST:
            return listing_response(request, page, sessions.sessions(self.project_id, filters.sessions, page))
        if page.offset:
            raise ValidationError(f"offset: {_NO_OFFSET}", details={"offset": [_NO_OFFSET]})
        found = sessions.session_listing(self.project_id, filters, sort=sort, after=after, limit=page.limit)
        return cursor_response(request, page, found)

    @operation("getSession", "One session", answer=SessionDetail, errors=[404])
    def retrieve(self, request: Request, session_id: str) -> Response:
        """The session has its latest feedback; all of it is a list of its own. Texts of feedback are null for a reader
        without content."""
        found = sessions.session(self.project_id, session_id)
        return Response(found if self.sees_content else lists_without_texts(found))

    @operation("deleteSession", "Forget a session and its requests", status=204, errors=[404])
    def destroy(self, request: Request, session_id: str) -> Response:
        """The session is hidden from every answer when this returns, and erased within seconds."""
        require_id("session_id", session_id, SESSION_ID_CHARACTERS)
        delete_session(self.project_id, session_id, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation("listSessionRequests", "Requests of a session", query=[PAGE], page=RequestEntry, errors=[404])
    @action(detail=True)
    def requests(self, request: Request, session_id: str) -> Response:
        """The requests are listed in the order in which they were made. Previews and the error's message are null for a
        reader without content."""
        page = parse_page(request)
        found = sessions.session_requests(self.project_id, session_id, page)
        return listing_response(request, page, found if self.sees_content else found.shown_as(request_without_texts))

    @operation(
        "sessionTranscript",
        "The conversation of a session",
        query=[TranscriptParameters],
        answer=SessionTranscript,
        errors=[404],
    )
    @action(detail=True)
    def transcript(self, request: Request, session_id: str) -> Response:
        """The requests are listed in the order in which they were made, each with the turns that no earlier one of the
        session carried, and its answer. Long texts are cut."""
        require_id("session_id", session_id, SESSION_ID_CHARACTERS)
        page = TranscriptParameters(data=request.query_params.dict()).values()
        return Response(sessions.transcript(self.project_id, session_id, **page))

    @operation(
        "sessionTimeline",
        "Spans and requests of a session as trees",
        query=[TimelineParameters],
        answer=SessionTimeline,
        errors=[404],
    )
    @action(detail=True)
    def timeline(self, request: Request, session_id: str) -> Response:
        """The nodes are listed in the order of a waterfall, depth first and by start; `next_offset` leads to those of
        later requests. Attributes and messages are null for a reader without content."""
        require_id("session_id", session_id, SESSION_ID_CHARACTERS)
        offset = self.valid_query(TimelineParameters).validated_data["offset"]
        found = timelines.timeline(self.project_id, session_id, offset)
        if not found["nodes"]:
            raise sessions.no_session()
        return Response(found if self.sees_content else lists_without_texts(found))


class SessionTelemetryViewSet(ProjectViewSet):
    @operation(
        "sessionTelemetry",
        "Spans and logs of a session",
        query=[path_parameter("project_id", UUID, "The project of the header.")],
        answer=SessionTelemetry,
        errors=[404],
    )
    def retrieve(self, request: Request, project_id: UUID | str, session_id: str) -> Response:
        """Attributes, bodies of logs and messages of statuses are null for a reader without content."""
        found = sessions.telemetry(self.project_id, session_id)
        return Response(found if self.sees_content else lists_without_texts(found))


_TRACE_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def parse_trace_id(text: str) -> str:
    """Returns the id as spans have it; a request's id may have its hyphens. Raises ValidationError."""
    trace_id = text.lower()
    if not _TRACE_ID.fullmatch(trace_id):
        raise ValidationError.of_field("trace_id", "Has to be 32 hexadecimal digits.")
    return trace_id.replace("-", "")


class TraceViewSet(ProjectViewSet):
    lookup_url_kwarg = "trace_id"
    lookup_value_converter = "str"

    @operation("getTrace", "One trace: its spans and requests as trees, and its logs", answer=Trace, errors=[404])
    def retrieve(self, request: Request, trace_id: str) -> Response:
        """The nodes are listed in the order of a waterfall, depth first and by start: the application's spans and the
        gateway's own. The id has 32 hexadecimal digits; that of a request which joined no trace is the request's.
        Attributes, messages and the bodies of logs are null for a reader without content."""
        found = trace(self.project_id, parse_trace_id(trace_id))
        return Response(found if self.sees_content else lists_without_texts(found))
