"""The roles a person can have in a project, and the rights that each brings."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from django.db import models


class Right(StrEnum):
    """What an operation or a page asks for. The four of a project come with a role in it; the others with none."""

    # Of a project, in rising order of the roles that first bring them.
    READ = "read"
    READ_CONTENT = "read_content"
    EDIT = "edit"
    ADMINISTER = "administer"
    # Of the installation: superusers.
    OPERATE = "operate"
    # Everybody, and everybody who is signed in as staff, with or without a role.
    OPEN = "open"
    SIGNED_IN = "signed_in"
    # API keys alone, and nobody at all: what pages of Django's would offer and this product does not do.
    KEY = "key"
    NOBODY = "nobody"


class Role(models.TextChoices):
    """In rising order."""

    READER_WITHOUT_CONTENT = "reader_without_content", "Reader without content"
    READER = "reader", "Reader"
    EDITOR = "editor", "Editor"
    ADMINISTRATOR = "administrator", "Administrator"


PROJECT_RIGHTS = (Right.READ, Right.READ_CONTENT, Right.EDIT, Right.ADMINISTER)

RIGHTS_OF: Mapping[Role, frozenset[Right]] = {
    role: frozenset(PROJECT_RIGHTS[: place + 1]) for place, role in enumerate(Role)
}


def least_role(right: Right) -> Role | None:
    """The lowest role that brings the right; None for a right that no role brings."""
    return next((role for role in Role if right in RIGHTS_OF[role]), None)
