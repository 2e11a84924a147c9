"""Tokens with which a browser gives feedback: signed, short-lived, for one session or one of its requests.

No table holds them: the signature, which covers the expiry, proves that the service made the token. A session's token
is valid for each of its requests too.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.core.signing import BadSignature, Signer
from django.utils import timezone

from analytics.errors import FeedbackTokenError
from analytics.identifiers import id_hash

HEADER = "x-svc-feedback-token"
MIN_SECONDS, DEFAULT_SECONDS, MAX_SECONDS = 60, 3600, 86_400

_SESSION_SALT = "analytics.feedback_tokens"
# A salt of its own: with the session's, a token of a request with its id before it would be one of the whole session.
_REQUEST_SALT = "analytics.feedback_tokens.request"


def make_token(
    project_id: UUID, session_id: str, *, seconds: int, request_id: UUID | None = None
) -> tuple[str, datetime]:
    """Returns a token for the session, or for one request alone, and its expiry in whole seconds."""
    expires_at = (timezone.now() + timedelta(seconds=seconds)).replace(microsecond=0)
    signer, subject = _signer(project_id, session_id, request_id)
    # What it is for is known where the token is checked, so that it does not hold that.
    return signer.sign(f"{subject}:{int(expires_at.timestamp())}").removeprefix(f"{subject}:"), expires_at


def check_token(token: str, project_id: UUID, session_id: str, request_id: UUID | None = None) -> None:
    """Raises FeedbackTokenError for a missing, changed or expired token, or another session's or request's."""
    if not token:
        raise FeedbackTokenError(
            f"This API key gives feedback only with the session's token in the header {HEADER}.",
            code="feedback_token_missing",
        )
    signed = _unsigned(token, project_id, session_id, None)
    if signed is None and request_id is not None:
        signed = _unsigned(token, project_id, session_id, request_id)
    if signed is None:
        what = "session, nor of this request of it" if request_id is not None else "session"
        raise FeedbackTokenError(f"{HEADER} is not a token of this {what}.")
    if datetime.fromtimestamp(int(signed.rpartition(":")[2]), UTC) <= timezone.now():
        raise FeedbackTokenError(f"{HEADER} has expired.")


def _unsigned(token: str, project_id: UUID, session_id: str, request_id: UUID | None) -> str | None:
    signer, subject = _signer(project_id, session_id, request_id)
    try:
        return signer.unsign(f"{subject}:{token}")
    except BadSignature:
        return None


def _signer(project_id: UUID, session_id: str, request_id: UUID | None) -> tuple[Signer, str]:
    session = f"{project_id}:{id_hash(session_id)}"
    if request_id is None:
        return Signer(salt=_SESSION_SALT), session
    return Signer(salt=_REQUEST_SALT), f"{session}:{request_id}"
