"""Tokens with which a browser gives feedback on one session: signed, bound to project and session, and soon expired.

No table holds them: the signature is the proof that the service made the token, and the expiry is signed with it.
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

_SIGNER = "analytics.feedback_tokens"


def make_token(project_id: UUID, session_id: str, *, seconds: int) -> tuple[str, datetime]:
    """Returns a token for feedback on the session, and when it expires, in whole seconds."""
    expires_at = (timezone.now() + timedelta(seconds=seconds)).replace(microsecond=0)
    signed = Signer(salt=_SIGNER).sign(f"{_subject(project_id, session_id)}:{int(expires_at.timestamp())}")
    # Project and session are known where the token is checked, so that it holds neither.
    return signed.removeprefix(f"{_subject(project_id, session_id)}:"), expires_at


def check_token(token: str, project_id: UUID, session_id: str) -> None:
    """Raises FeedbackTokenError for a token that is missing, made for another session, changed or expired."""
    if not token:
        raise FeedbackTokenError(
            f"This API key gives feedback only with the session's token in the header {HEADER}.",
            code="feedback_token_missing",
        )
    try:
        signed = Signer(salt=_SIGNER).unsign(f"{_subject(project_id, session_id)}:{token}")
    except BadSignature:
        raise FeedbackTokenError(f"{HEADER} is not a token of this session.") from None
    if datetime.fromtimestamp(int(signed.rpartition(":")[2]), UTC) <= timezone.now():
        raise FeedbackTokenError(f"{HEADER} has expired.")


def _subject(project_id: UUID, session_id: str) -> str:
    return f"{project_id}:{id_hash(session_id)}"
