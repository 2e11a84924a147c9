"""Writes requests as lines of JSON, for the export over HTTP and on the command line."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import msgspec

from analytics.queries.export import Exported, export_chunks
from analytics.queries.request_filters import RequestFilter
from analytics.wire.requests import request_entry, stored_body
from core.errors import ApplicationError
from core.http.exception_handler import error_body, log_unexpected

logger = logging.getLogger("analytics.export")

_encoder = msgspec.json.Encoder()


def request_lines(project_id: UUID, filters: RequestFilter, *, content: bool) -> Iterator[bytes]:
    """Yields pieces of the export, each of whole lines. Raises the errors of `client.query`."""
    count = 0
    for chunk in export_chunks(project_id, filters, content=content):
        yield b"".join(_line(item, content=content) for item in chunk)
        count += len(chunk)
    logger.info("export.finished project_id=%s requests=%d", project_id, count)


def export_lines(project_id: UUID, filters: RequestFilter, *, content: bool) -> Iterator[bytes]:
    """Yields the pieces of `request_lines`. A failure after the first piece becomes the last line of the export.

    That line is `{"error": …}`: the status was sent with the first piece. A failure before it is raised.
    """
    begun = False
    try:
        for piece in request_lines(project_id, filters, content=content):
            begun = True
            yield piece
    except Exception as error:
        if not begun:
            raise
        yield _encoder.encode(error_body(_reported(error, project_id))) + b"\n"


def _reported(error: Exception, project_id: UUID) -> ApplicationError:
    if isinstance(error, ApplicationError):
        logger.warning("export.broken project_id=%s error=%s", project_id, type(error).__name__)
        return error
    log_unexpected(error, f"export of {project_id}")
    return ApplicationError("The service failed unexpectedly.")


def _line(item: Exported, *, content: bool) -> bytes:
    row, payload = item
    entry: dict[str, Any] = {**request_entry(row)}
    if content:
        entry["request"] = stored_body(payload.request) if payload else None
        entry["response"] = stored_body(payload.response) if payload else None
    try:
        return _encoder.encode(entry) + b"\n"
    except OverflowError:
        # Msgspec refuses a number beyond 64 bits, which a body may contain; the standard library writes any.
        text = json.dumps(entry, default=msgspec.to_builtins, ensure_ascii=False, separators=(",", ":"))
        return text.encode() + b"\n"
