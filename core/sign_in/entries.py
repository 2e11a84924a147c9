from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.http import HttpRequest

from core.audit.entries import write
from core.audit.recording import CREATED, Change
from core.audit.subjects import SIGN_IN
from core.models import AuditEntry
from core.rights.asking import actor_of


def write_sign_in(request: HttpRequest, user: User, method: str, changes: Iterable[Change] = ()) -> None:
    signed_in = Change(SIGN_IN, str(user.pk), user.get_username(), None, CREATED, after={"method": method})
    write_changes(request, user, [signed_in, *changes], operation="sign_in")


def write_changes(
    request: HttpRequest, user: User, changes: Iterable[Change], *, operation: str = "second_factor"
) -> None:
    write(
        changes,
        actor=actor_of(user),
        actor_id=str(user.pk),
        via=AuditEntry.Via.PAGE,
        operation=operation,
        request_id=str(getattr(request, "request_id", "")),
    )
