"""What is to be forgotten: the requests of a session until a moment, or one request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from analytics.models import Deletion, DeletionKind

_SESSION = "project_id = {project:UUID} AND session_id = {session:String} AND ts <= {until:DateTime64(6, 'UTC')}"
_REQUEST = "project_id = {project:UUID} AND request_id = {request:UUID}"
_SESSION_TELEMETRY = (
    "ProjectId = {project:UUID} AND has(SessionIds, {session:String}) AND Timestamp <= {until:DateTime64(6, 'UTC')}"
)
_REQUEST_SPANS = "ProjectId = {project:UUID} AND SpanAttributes['prompt_gateway.request_id'] = {request_text:String}"


@dataclass(frozen=True)
class Subject:
    """SQL conditions with their parameters. What a session receives after `until` is new, and stays."""

    requests: str
    spans: str
    logs: str
    parameters: dict[str, Any]


def session_subject(project_id: UUID, session_id: str, until: datetime) -> Subject:
    values = {"project": project_id, "session": session_id, "until": until}
    return Subject(_SESSION, _SESSION_TELEMETRY, _SESSION_TELEMETRY, values)


def request_subject(project_id: UUID, request_id: UUID) -> Subject:
    """Logs name sessions, and no requests."""
    values = {"project": project_id, "request": request_id, "request_text": str(request_id)}
    return Subject(_REQUEST, _REQUEST_SPANS, "", values)


def subject_of(deletion: Deletion) -> Subject:
    if deletion.kind == DeletionKind.SESSION:
        return session_subject(deletion.project_id, deletion.subject, deletion.requested_at)
    return request_subject(deletion.project_id, UUID(deletion.subject))
