"""Every change of a label locks the config's row, and saves it, so that gateways follow."""

from __future__ import annotations

import logging
import re
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from core.errors import ValidationError
from prompts.errors import LabelNotFoundError, LabelProtectedError
from prompts.models import LABEL_CHARACTERS, LATEST, PromptConfig, PromptLabel, PromptLabelMove, PromptVersion
from prompts.selectors import get_config
from prompts.services import locked_config, version_of_config

logger = logging.getLogger("prompts")

_RESERVED = frozenset({LATEST, "active"})
# Numbers are those of versions.
_NAME = re.compile(rf"(?![0-9]+\Z)[a-z0-9][a-z0-9._-]{{0,{LABEL_CHARACTERS - 1}}}", re.ASCII)


def list_labels(project_id: UUID, config_id: UUID) -> QuerySet[PromptLabel]:
    get_config(project_id, config_id)
    return PromptLabel.objects.filter(config_id=config_id).select_related("version").order_by("name")


def list_label_moves(project_id: UUID, config_id: UUID) -> QuerySet[PromptLabelMove]:
    get_config(project_id, config_id)
    moves = PromptLabelMove.objects.filter(config_id=config_id).order_by("-id")
    return moves.select_related("from_version", "to_version")


def set_label(
    *,
    project_id: UUID,
    config_id: UUID,
    name: str,
    number: int,
    actor: str,
    is_administrator: bool,
    reason: str = "",
    is_protected: bool | None = None,
) -> PromptLabel:
    """Makes a label, or moves it to the version `number`; `is_protected` None leaves the protection as it is. A label
    that is there already adds no move. Raises ConfigNotFoundError, VersionNotFoundError, ValidationError for a name
    that is none, and LabelProtectedError for anybody but an administrator."""
    _check_name(name)
    with transaction.atomic():
        config = locked_config(config_id, project_id)
        version = version_of_config(config, number)
        label = PromptLabel.objects.filter(config=config, name=name).select_related("version").first()
        protects = is_protected is not None and is_protected != (label is not None and label.is_protected)
        if not is_administrator and (protects or (label is not None and label.is_protected)):
            raise LabelProtectedError(name)
        before = label.version if label is not None else None
        row = label or PromptLabel(config=config, name=name)
        row.version = version
        if is_protected is not None:
            row.is_protected = is_protected
        row.save()
        if before is None or before.pk != version.pk:
            _note_move(config, name, before, version, actor, reason)
        config.save(update_fields=["updated_at"])
    return row


def remove_label(
    *, project_id: UUID, config_id: UUID, name: str, actor: str, is_administrator: bool, reason: str = ""
) -> None:
    """Removes a label; its moves stay. Raises ConfigNotFoundError, LabelNotFoundError, LabelProtectedError."""
    with transaction.atomic():
        config = locked_config(config_id, project_id)
        label = PromptLabel.objects.filter(config=config, name=name).select_related("version").first()
        if label is None:
            raise LabelNotFoundError(name)
        if label.is_protected and not is_administrator:
            raise LabelProtectedError(name)
        _note_move(config, name, label.version, None, actor, reason)
        label.delete()
        config.save(update_fields=["updated_at"])


def _note_move(
    config: PromptConfig,
    name: str,
    before: PromptVersion | None,
    after: PromptVersion | None,
    actor: str,
    reason: str,
) -> None:
    PromptLabelMove.objects.create(
        config=config, label=name, from_version=before, to_version=after, actor=actor, reason=reason
    )
    logger.info(
        "prompt_label.moved project_id=%s config_id=%s label=%s version=%s actor=%s",
        config.project_id,
        config.pk,
        name,
        after.number if after is not None else "none",
        actor,
    )


def name_problem(name: str) -> str:
    problem = ""
    if name in _RESERVED:
        problem = f"Must not be {' or '.join(sorted(_RESERVED))}, which every prompt has."
    elif not _NAME.fullmatch(name):
        problem = (
            f"Must be 1 to {LABEL_CHARACTERS} lower-case letters, digits, dots, dashes or underscores, begin with a"
            " letter or digit, and be no number."
        )
    return problem


def _check_name(name: str) -> None:
    problem = name_problem(name)
    if problem:
        raise ValidationError(f"label: {problem}", details={"label": [problem]})
