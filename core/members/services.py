from __future__ import annotations

from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction

from core.errors import ConflictError, NotFoundError, ValidationError
from core.models import Membership, Project
from core.roles import Role, highest_role

_NOBODY = "There is no member of staff with this name. Give an e-mail address under Members to invite somebody."
_LAST = "This is the project's last administrator. Make somebody else one first."


def add_member(*, project_id: UUID, username: str, role: Role, actor: str) -> Membership:
    """Raises ValidationError if no staff account has the name, and ConflictError for an existing member."""
    user = get_user_model().objects.filter(username=username, is_staff=True, is_active=True).first()
    if user is None:
        raise ValidationError(f"username: {_NOBODY}", details={"username": [_NOBODY]})
    row, made = Membership.objects.get_or_create(
        project_id=project_id, user=user, defaults={"role": role, "created_by": actor}
    )
    if not made:
        raise ConflictError(f"{username} is a member of this project already.", code="member_exists")
    return row


def change_role(*, project_id: UUID, member_id: int, role: Role, is_superuser: bool = False) -> Membership:
    """Raises NotFoundError, and ConflictError if the project would lose its last administrator or if the person's
    groups at a sign-in provider give a higher role.

    With `is_superuser` the caller can administer the project without being a member.
    """
    with transaction.atomic():
        row = _locked(project_id, member_id)
        if row.group_role and highest_role(role, row.group_role) != role:
            raise _role_from_groups(row)
        if role is not Role.ADMINISTRATOR and not is_superuser:
            _require_another_administrator(row)
        row.role = role
        if row.group_role:
            row.given_role = role
        row.save(update_fields=["role", "given_role"])
    return row


def remove_member(*, project_id: UUID, member_id: int, is_superuser: bool = False) -> None:
    with transaction.atomic():
        row = _locked(project_id, member_id)
        if row.group_role and not row.given_role:
            raise _role_from_groups(row)
        if not is_superuser and row.group_role != Role.ADMINISTRATOR:
            _require_another_administrator(row)
        if row.group_role:
            row.role, row.given_role = row.group_role, ""
            row.save(update_fields=["role", "given_role"])
        else:
            row.delete()


def is_last_administrator(row: Membership) -> bool:
    """Returns whether no other account that can sign in administers the project."""
    if row.role != Role.ADMINISTRATOR:
        return False
    others = Membership.objects.filter(
        project_id=row.project_id, role=Role.ADMINISTRATOR, user__is_active=True, user__is_staff=True
    )
    return not others.exclude(pk=row.pk).exists()


def _role_from_groups(row: Membership) -> ConflictError:
    role = Role(row.group_role).label.lower()
    message = f"The groups of {row.user} at the sign-in provider give the role {role}. Change the groups there."
    return ConflictError(message, code="role_from_groups")


def _locked(project_id: UUID, member_id: int) -> Membership:
    # All changes of a project's members take the same lock: two administrators must not remove each other at once.
    Project.objects.select_for_update().filter(pk=project_id).first()
    row = Membership.objects.filter(project_id=project_id, pk=member_id).select_related("user").first()
    if row is None:
        raise NotFoundError("There is no such member in this project.", code="member_not_found")
    return row


def _require_another_administrator(row: Membership) -> None:
    if is_last_administrator(row):
        raise ConflictError(_LAST, code="last_administrator")
