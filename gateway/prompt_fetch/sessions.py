"""Admits people who are signed in to the admin, whose roles the SQL database knows. Called in threads."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from core.api.admission import Admission, with_session


class _Reading(Admission):
    operation_id = "getPrompt"


def project_of_session(scope: dict[str, Any]) -> UUID:
    """Returns the project that the header names and the person may read. Raises the exceptions that
    `core.http.exception_handler.translate` knows."""
    # The body is read elsewhere: here it has no bytes.
    reading = _Reading()
    reading.admit(with_session(scope))
    return reading.project_id
