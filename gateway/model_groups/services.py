"""Makes, changes and deletes model groups."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from core.errors import ConflictError, NotFoundError, ValidationError
from gateway.models import ModelGroupRow

logger = logging.getLogger("gateway.model_groups")

MAX_GROUPS = 200

Members = Sequence[Mapping[str, Any]]


def list_groups(project_id: UUID) -> QuerySet[ModelGroupRow]:
    return ModelGroupRow.objects.for_project(project_id)


def get_group(project_id: UUID, name: str) -> ModelGroupRow:
    """Returns the group. Raises NotFoundError."""
    row = list_groups(project_id).filter(name=name).first()
    if row is None:
        raise NotFoundError(f"The project has no model group {name!r}.", code="model_group_not_found")
    return row


def create_group(*, project_id: UUID, name: str, strategy: str, members: Members, actor: str) -> ModelGroupRow:
    """Returns the new group. Raises ConflictError for a name that is taken, ValidationError for members that are
    groups, or a name that is a member of another group."""
    rows = list(list_groups(project_id))
    holders = [row.name for row in rows if any(member["model"] == name for member in row.members)]
    if holders:
        raise ValidationError.of_field(
            "name", f"{holders[0]} has a member of this name, and a group may not contain a group."
        )
    if len(rows) >= MAX_GROUPS:
        raise ConflictError(f"A project has at most {MAX_GROUPS} model groups.", code="too_many_model_groups")
    _check_members(name, {row.name for row in rows}, members)
    try:
        with transaction.atomic():
            row = ModelGroupRow.objects.create(
                project_id=project_id, name=name, strategy=strategy, members=list(members)
            )
    except IntegrityError:
        raise ConflictError(f"The project has a model group {name!r} already.", code="model_group_exists") from None
    logger.info("model_group.created project_id=%s name=%s actor=%s", project_id, name, actor)
    return row


def change_group(*, project_id: UUID, name: str, strategy: str, members: Members, actor: str) -> ModelGroupRow:
    """Returns the group with another strategy and other members. Raises NotFoundError, ValidationError."""
    with transaction.atomic():
        row = get_group(project_id, name)
        _check_members(name, set(list_groups(project_id).values_list("name", flat=True)), members)
        row.strategy, row.members = strategy, list(members)
        row.save()
    logger.info("model_group.changed project_id=%s name=%s actor=%s", project_id, name, actor)
    return row


def delete_group(*, project_id: UUID, name: str, actor: str) -> None:
    """Deletes the group: requests that name it are answered with 404 from then on. Raises NotFoundError."""
    get_group(project_id, name).delete()
    logger.info("model_group.deleted project_id=%s name=%s actor=%s", project_id, name, actor)


def _check_members(name: str, groups: set[str], members: Members) -> None:
    inner = [member["model"] for member in members if member["model"] in groups | {name}]
    if inner:
        raise ValidationError.of_field("members", f"{inner[0]} is a model group, and a group may not contain a group.")
