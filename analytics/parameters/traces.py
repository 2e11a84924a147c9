"""The id of a trace, as callers write it."""

from __future__ import annotations

import re

from core.errors import ValidationError

_TRACE_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PROBLEM = "Has to be 32 hexadecimal digits."


def parse_trace_id(text: str) -> str:
    """Returns the id as spans have it; a request's id may have its hyphens. Raises ValidationError."""
    trace_id = text.lower()
    if not _TRACE_ID.fullmatch(trace_id):
        raise ValidationError(f"trace_id: {_PROBLEM}", details={"trace_id": [_PROBLEM]})
    return trace_id.replace("-", "")
