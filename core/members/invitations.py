from __future__ import annotations

import logging
import secrets
from datetime import timedelta
from smtplib import SMTPException
from uuid import UUID

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from core.errors import ConflictError, NotFoundError
from core.http.addresses import public_url
from core.models import Invitation
from core.resources.rows import get_or_raise, require_room
from core.roles import Role
from core.sign_in.invitations import hash_of

logger = logging.getLogger("core.members")

MAX_INVITATIONS = 500
_LINK_DAYS = 7
_TOKEN_BYTES = 32
_SMTP = "django.core.mail.backends.smtp.EmailBackend"
_FULL = ConflictError(f"A project has at most {MAX_INVITATIONS} open invitations.", code="too_many_invitations")
_TEXT = """You are invited to the project {project} as {role}:

{link}

The link is for you alone, works once, and ends in {days} days.
"""


def invite(*, project_id: UUID, email: str, role: Role, actor: str) -> tuple[Invitation, str]:
    """Returns the invitation with its link, which nothing stores. A new one takes the place of an older one for the
    address.

    Raises ConflictError if there are too many.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    with transaction.atomic():
        others = Invitation.objects.for_project(project_id).exclude(email=email.lower())
        require_room(project_id, others, MAX_INVITATIONS, _FULL)
        values = {
            "role": role,
            "token_hash": hash_of(token),
            "created_by": actor,
            "expires_at": timezone.now() + timedelta(days=_LINK_DAYS),
        }
        row, _ = Invitation.objects.update_or_create(project_id=project_id, email=email.lower(), defaults=values)
    return row, public_url() + reverse("admin:invitation", args=[token])


def send_invitation(row: Invitation, link: str) -> bool:
    """Returns whether a mail was sent: False without a mail server, or if it did not take the mail."""
    if settings.EMAIL_BACKEND == _SMTP and not settings.EMAIL_HOST:
        return False
    role = Role(row.role).label.lower()
    text = _TEXT.format(project=row.project, role=role, link=link, days=_LINK_DAYS)
    try:
        send_mail(f"Invitation to {row.project}", text, settings.DEFAULT_FROM_EMAIL, [row.email])
    except (SMTPException, OSError) as error:
        logger.warning("invitation.not_sent project_id=%s error=%s", row.project_id, type(error).__name__)
        return False
    return True


def revoke_invitation(project_id: UUID, invitation_id: int) -> Invitation:
    """Raises NotFoundError."""
    missing = NotFoundError("There is no such invitation in this project.", code="invitation_not_found")
    row = get_or_raise(Invitation.objects.for_project(project_id), missing, pk=invitation_id)
    Invitation.objects.get(pk=row.pk).delete()
    return row
