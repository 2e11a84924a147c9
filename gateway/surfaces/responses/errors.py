"""Errors of the Responses API, which have the form of those of chat completions."""

from __future__ import annotations

import msgspec

from core.errors import ApplicationError


def error_body(error: ApplicationError) -> bytes:
    return msgspec.json.encode(error.envelope())
