"""The record of a request, read once for all panels of its page, which load in parallel."""

from __future__ import annotations

from threading import Lock
from uuid import UUID

from analytics.presenters.requests import find_request, request_without_bodies
from analytics.queries.requests import Payload, RequestDetailRow, get_payload
from analytics.wire.requests import RequestDetail
from analytics.wire.texts import request_without_texts


class Record:
    def __init__(self, project_id: UUID, request_id: UUID, *, sees_content: bool) -> None:
        self.project_id = project_id
        self.request_id = request_id
        self._sees_content = sees_content
        self._lock = Lock()
        self._row: RequestDetailRow | None = None
        self._payload: Payload | None = None

    @property
    def row(self) -> RequestDetailRow:
        """Raises NotFoundError."""
        with self._lock:
            if self._row is None:
                self._row = find_request(self.project_id, self.request_id)
            return self._row

    @property
    def payload(self) -> Payload | None:
        """The bodies; None if there are none, or for a reader without content."""
        row = self.row
        if not self._sees_content:
            return None
        with self._lock:
            if self._payload is None:
                self._payload = get_payload(self.project_id, row)
            return self._payload

    def detail(self) -> RequestDetail:
        """Returns the API's answer without bodies, and without texts for a reader without content."""
        found = request_without_bodies(self.project_id, self.row)
        return found if self._sees_content else request_without_texts(found)  # type: ignore[return-value]
