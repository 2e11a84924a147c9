from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from django.db import models


class Right(StrEnum):
    """A right that an operation or a page needs. Four belong to roles in a project, the others to no role."""

    # The rights in a project, in the order of the roles that first bring them.
    READ = "read"
    READ_CONTENT = "read_content"
    EDIT = "edit"
    ADMINISTER = "administer"
    # The right of superusers, for the whole installation.
    OPERATE = "operate"
    # The rights of everybody, and of everybody who is signed in as staff, with or without a role.
    OPEN = "open"
    SIGNED_IN = "signed_in"
    # The rights of API keys alone, and of nobody: for pages of Django that this product does not offer.
    KEY = "key"
    NOBODY = "nobody"


class Role(models.TextChoices):
    READER_WITHOUT_CONTENT = "reader_without_content", "Reader without content"
    READER = "reader", "Reader"
    EDITOR = "editor", "Editor"
    ADMINISTRATOR = "administrator", "Administrator"


PROJECT_RIGHTS = (Right.READ, Right.READ_CONTENT, Right.EDIT, Right.ADMINISTER)

RIGHTS_OF: Mapping[Role, frozenset[Right]] = {
    role: frozenset(PROJECT_RIGHTS[: place + 1]) for place, role in enumerate(Role)
}


def least_role(right: Right) -> Role | None:
    return next((role for role in Role if right in RIGHTS_OF[role]), None)


def highest_role(*roles: str) -> Role:
    return max((Role(role) for role in roles if role), key=list(Role).index)
