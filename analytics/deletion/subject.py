from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from analytics.identifiers import arrival_of
from analytics.models import Deletion, DeletionKind

_SESSION = "project_id = {project:UUID} AND session_id = {session:String} AND ts <= {until:DateTime64(6, 'UTC')}"
_REQUEST = "project_id = {project:UUID} AND request_id = {request:UUID}"
_SESSION_TELEMETRY = (
    "ProjectId = {project:UUID} AND has(SessionIds, {session:String}) AND Timestamp <= {until:DateTime64(6, 'UTC')}"
)
_SESSION_TRACES = """ProjectId = {project:UUID} AND SessionId = {session:String}
    AND Timestamp <= {until:DateTime64(6, 'UTC')}"""
# What names no session belongs to those of its trace; what names another one alone stays.
_OF_TRACES = f"""ProjectId = {{project:UUID}}
    AND TraceId IN (SELECT TraceId FROM otel_session_traces WHERE {_SESSION_TRACES})
    AND (has(SessionIds, {{session:String}}) OR empty(SessionIds)) AND Timestamp <= {{until:DateTime64(6, 'UTC')}}"""
_USER = """project_id = {project:UUID} AND ts <= {until:DateTime64(6, 'UTC')}
    AND (user_id = {user:String} OR has({sessions:Array(String)}, session_id))"""
_UNTIL = "ProjectId = {project:UUID} AND Timestamp <= {until:DateTime64(6, 'UTC')}"
# An application names the user of a span or a log by an attribute, of OpenTelemetry or of OpenInference.
_USER_SPANS, _USER_LOGS = (
    f"""{_UNTIL} AND (hasAny(SessionIds, {{sessions:Array(String)}})
    OR {attributes}['user.id'] = {{user:String}} OR {attributes}['enduser.id'] = {{user:String}})"""
    for attributes in ("SpanAttributes", "LogAttributes")
)
_USER_TRACES = f"{_UNTIL} AND has({{sessions:Array(String)}}, SessionId)"
_OF_USER_TRACES = f"""{_UNTIL} AND TraceId IN (SELECT TraceId FROM otel_session_traces WHERE {_USER_TRACES})
    AND (hasAny(SessionIds, {{sessions:Array(String)}}) OR empty(SessionIds))"""
# Attributes have no index, so that a range of time has to limit the search.
_REQUEST_SPANS = """ProjectId = {project:UUID}
    AND SpanAttributes['prompt_gateway.request_id'] IN {request_ids:Array(String)}
    AND Timestamp >= {spans_from:DateTime64(6, 'UTC')} AND Timestamp <= {spans_to:DateTime64(6, 'UTC')}"""
# A request's last attempt begins within its time limits, which are minutes.
_SPANS_BEGIN_WITHIN = timedelta(hours=2)
_CLOCKS_DIFFER_BY = timedelta(minutes=5)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Subject:
    """The SQL conditions of a subject with their parameters. Records of a session after `until` stay.

    `traces` finds the traces of a session in `otel_session_traces`, and `of_traces` the keys of their spans and logs.
    An empty condition finds nothing.
    """

    requests: str
    spans: str
    logs: str
    parameters: dict[str, Any]
    traces: str = ""
    of_traces: str = ""


def session_subject(project_id: UUID, session_id: str, until: datetime) -> Subject:
    values = {"project": project_id, "session": session_id, "until": until}
    return Subject(_SESSION, _SESSION_TELEMETRY, _SESSION_TELEMETRY, values, _SESSION_TRACES, _OF_TRACES)


def user_subject(project_id: UUID, user_id: str, sessions: Sequence[str], until: datetime) -> Subject:
    """`sessions` are the user's own."""
    values = {"project": project_id, "user": user_id, "sessions": list(sessions), "until": until}
    of_sessions = (_USER_TRACES, _OF_USER_TRACES) if sessions else ("", "")
    return Subject(_USER, _USER_SPANS, _USER_LOGS, values, *of_sessions)


def request_subject(project_id: UUID, request_id: UUID) -> Subject:
    """Has no condition for logs, which name only sessions. The request's id holds its time of arrival."""
    arrived = arrival_of(request_id) or _EPOCH
    return Subject(_REQUEST, _REQUEST_SPANS, "", {"request": request_id, **_spans(project_id, [request_id], arrived)})


def spans_of(
    project_id: UUID, request_ids: Sequence[UUID], first: datetime, last: datetime
) -> tuple[str, dict[str, Any]]:
    return _REQUEST_SPANS, _spans(project_id, request_ids, first, last)


def _spans(
    project_id: UUID, request_ids: Sequence[UUID], first: datetime, last: datetime | None = None
) -> dict[str, Any]:
    return {
        "project": project_id,
        "request_ids": [str(request_id) for request_id in request_ids],
        "spans_from": max(first - _CLOCKS_DIFFER_BY, _EPOCH),
        "spans_to": (last or first) + _SPANS_BEGIN_WITHIN,
    }


def subject_of(deletion: Deletion) -> Subject:
    """Empty for an item, and for a deletion whose id is forgotten."""
    if deletion.kind == DeletionKind.ITEM or not deletion.subject:
        return Subject("", "", "", {"project": deletion.project_id})
    if deletion.kind == DeletionKind.SESSION:
        return session_subject(deletion.project_id, deletion.subject, deletion.requested_at)
    if deletion.kind == DeletionKind.USER:
        return user_subject(deletion.project_id, deletion.subject, deletion.sessions or [], deletion.requested_at)
    return request_subject(deletion.project_id, UUID(deletion.subject))
