"""Writes a request again as a command of curl, with a placeholder for the key."""

from __future__ import annotations

import shlex

from analytics.queries.requests import Payload, RequestRow
from analytics.telemetry.operation_names import operation_names
from core.http.addresses import public_url

# A longer body would make the page too large; its command is shown with all texts.
MAX_CHARACTERS = 20_000


def curl_command(row: RequestRow, payload: Payload | None, max_characters: int) -> str:
    """Returns the command; empty for a body that is not kept, is too long, or is no JSON."""
    body = payload.request if payload else ""
    if not body.startswith("{") or len(body) > max_characters:
        return ""
    lines = [
        f"curl {shlex.quote(public_url() + operation_names(row.operation).route)}",
        '-H "Authorization: Bearer $KEY"',
        "-H 'Content-Type: application/json'",
        *_identity(row),
        f"-d {shlex.quote(body)}",
    ]
    return " \\\n  ".join(lines)


def _identity(row: RequestRow) -> list[str]:
    named = {"x-svc-session-id": row.session_id, "x-svc-user-id": row.user_id}
    return [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in named.items() if value]
