"""Changes of prompts. Every service that moves or numbers something locks the config's row first."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from core.errors import ValidationError
from core.resources.rows import get_or_raise
from prompts.content.composition import Library, compose, is_composed
from prompts.content.messages import INCLUDE
from prompts.content.templating import compile_messages
from prompts.content.version import VersionContent, check_content
from prompts.errors import (
    ConfigExistsError,
    ConfigNotFoundError,
    IncludedPromptError,
    NothingToUndoError,
    RolloutActiveError,
    VersionNotFoundError,
)
from prompts.models import NAME_CHARACTERS, PromptActivation, PromptConfig, PromptVersion

logger = logging.getLogger("prompts")

Kind = PromptActivation.Kind
RESERVED_NAMES = ("configs", "check", "export", "import", "labels", "rollouts")
"""The names that are paths of the management API, so that no prompt could be fetched at them."""


def create_config(*, project_id: UUID, name: str, description: str = "", actor: str = "") -> PromptConfig:
    row = PromptConfig(project_id=project_id, name=named(name), description=description)
    _save_named(row)
    _log("prompt_config.created", project_id, row.pk, actor)
    return row


def update_config(
    *, project_id: UUID, config_id: UUID, name: str | None = None, description: str | None = None, actor: str = ""
) -> PromptConfig:
    """Changes the fields that are not None. Raises ConfigNotFoundError, ValidationError, ConfigExistsError, and
    IncludedPromptError for renaming a prompt that another one includes."""
    with transaction.atomic():
        row = locked_config(config_id, project_id)
        if name is not None and name != row.name:
            _require_not_included(row)
            row.name = named(name, before=row.name)
        if description is not None:
            row.description = description
        _save_named(row)
    _log("prompt_config.updated", project_id, config_id, actor)
    return row


def delete_config(*, project_id: UUID, config_id: UUID, actor: str = "") -> None:
    """Raises ConfigNotFoundError, RolloutActiveError during a rollout, and IncludedPromptError while another prompt
    includes it."""
    with transaction.atomic():
        row = locked_config(config_id, project_id)
        if row.has_active_rollout:
            raise RolloutActiveError("A prompt config cannot be deleted")
        _require_not_included(row)
        row.delete()
    _log("prompt_config.deleted", project_id, config_id, actor)


def add_version(
    *, project_id: UUID, config_id: UUID, content: VersionContent, actor: str, check_includes: bool = True
) -> PromptVersion:
    """Adds the next version; the first is activated at once. Raises ConfigNotFoundError, InvalidVersionError.

    Without `check_includes` the included prompts may follow later: the caller checks them.
    """
    check_content(content)
    with transaction.atomic():
        config = locked_config(config_id, project_id)
        if check_includes:
            require_composable(project_id, config_id, content.messages, content.variables)
        config.last_version_number += 1
        config.save(update_fields=["last_version_number", "updated_at"])
        version = PromptVersion.objects.create(
            config=config,
            number=config.last_version_number,
            created_by=actor,
            **asdict(content),
        )
        if config.active_version_id is None:
            _move(config, version, kind=Kind.CREATED, actor=actor)
    _log("prompt_version.added", project_id, config_id, actor, version.number)
    return version


def activate_version(
    *,
    project_id: UUID,
    config_id: UUID,
    version_id: UUID,
    actor: str,
    reason: str = "",
    check_includes: bool = True,
) -> PromptConfig:
    """Activating the active version changes nothing and adds no row to the history.

    Raises ConfigNotFoundError, VersionNotFoundError, RolloutActiveError during a rollout, and InvalidVersionError if an
    included prompt no longer exists.
    """
    with transaction.atomic():
        config = locked_config(config_id, project_id)
        if config.has_active_rollout:
            raise RolloutActiveError("A version cannot be activated")
        version = _version_of(config, version_id)
        if check_includes:
            require_composable(project_id, config_id, version.messages, version.variables)
        if version.pk != config.active_version_id:
            _move(config, version, kind=Kind.ACTIVATED, actor=actor, reason=reason)
    return config


def undo_activation(*, project_id: UUID, config_id: UUID, actor: str, reason: str = "") -> PromptActivation:
    """Reverts the latest move that was not reverted yet; called again, the one before it.

    Raises ConfigNotFoundError, NothingToUndoError, and RolloutActiveError during a rollout.
    """
    with transaction.atomic():
        config = locked_config(config_id, project_id)
        if config.has_active_rollout:
            raise RolloutActiveError("An activation cannot be undone")
        moves = PromptActivation.objects.filter(config=config, undone_by=None).exclude(kind=Kind.UNDONE)
        latest = moves.select_related("from_version").order_by("-id").first()
        if latest is None or latest.from_version is None:
            raise NothingToUndoError
        return _move(config, latest.from_version, kind=Kind.UNDONE, actor=actor, reason=reason, undoes=latest)


def set_rollout_active(*, config_id: UUID, active: bool) -> None:
    """Call it in the transaction that changes the rollout's status. Raises ConfigNotFoundError."""
    with transaction.atomic():
        config = locked_config(config_id)
        config.has_active_rollout = active
        config.save(update_fields=["has_active_rollout", "updated_at"])


def activate_for_rollout(*, config_id: UUID, version_id: UUID, actor: str, reason: str = "") -> PromptConfig:
    """Activates a completed rollout's version, even while the rollout counts as active. Raises ConfigNotFoundError and
    VersionNotFoundError."""
    with transaction.atomic():
        config = locked_config(config_id)
        version = _version_of(config, version_id)
        if version.pk != config.active_version_id:
            _move(config, version, kind=Kind.ROLLOUT, actor=actor, reason=reason)
    return config


def locked_config(config_id: UUID, project_id: UUID | None = None) -> PromptConfig:
    configs = PromptConfig.objects.all() if project_id is None else PromptConfig.objects.for_project(project_id)
    return get_or_raise(configs.select_for_update(), ConfigNotFoundError, pk=config_id)


def _version_of(config: PromptConfig, version_id: UUID) -> PromptVersion:
    return get_or_raise(PromptVersion.objects, VersionNotFoundError, config=config, pk=version_id)


def version_of_config(config: PromptConfig, number: int) -> PromptVersion:
    return get_or_raise(PromptVersion.objects, VersionNotFoundError, config=config, number=number)


def require_composable(
    project_id: UUID, config_id: UUID, messages: Sequence[Mapping[str, Any]], variables: Sequence[Mapping[str, Any]]
) -> None:
    if is_composed(messages):
        made = compose(Library(project_id), config_id, messages, variables)
        compile_messages(made.texts, made.variables)


def _require_not_included(config: PromptConfig) -> None:
    others = PromptConfig.objects.for_project(config.project_id).exclude(pk=config.pk).order_by("name")
    # The messages are JSON in a text: most versions include nothing.
    rows = others.filter(active_version__messages__contains=f'"{INCLUDE}"').values_list(
        "name", "active_version__messages"
    )
    names = [name for name, messages in rows if _includes(messages, config.name)]
    if names:
        raise IncludedPromptError(names)


def _includes(messages: Sequence[Mapping[str, Any]], name: str) -> bool:
    references = [message.get(INCLUDE, "") for message in messages]
    return any(reference == name or reference.rpartition("@")[0] == name for reference in references)


def _move(
    config: PromptConfig,
    version: PromptVersion,
    *,
    kind: PromptActivation.Kind,
    actor: str,
    reason: str = "",
    undoes: PromptActivation | None = None,
) -> PromptActivation:
    row = PromptActivation.objects.create(
        config=config,
        from_version_id=config.active_version_id,
        to_version=version,
        kind=kind,
        actor=actor,
        reason=reason,
        undoes=undoes,
    )
    config.active_version = version
    # The row is saved, not updated by a query: the gateway listens to the signal and serves the version.
    config.save(update_fields=["active_version", "updated_at"])
    _log(f"prompt_version.{kind.value}", config.project_id, config.pk, actor, version.number)
    return row


def _save_named(row: PromptConfig) -> None:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        taken = PromptConfig.objects.for_project(row.project_id).filter(name=row.name).exclude(pk=row.pk).exists()
        if not taken:
            raise
        raise ConfigExistsError(row.name) from None


def named(name: str, *, before: str = "") -> str:
    """Returns a name that a config may get; the one that it had `before` always passes.

    A header has to carry a name: no control characters, and no blanks at its ends, which HTTP removes. A new name must
    not begin with a path of the management API, where it could not be fetched, or contain `@`, which precedes a label
    or a version.
    """
    name = name.strip()
    if not name or len(name) > NAME_CHARACTERS or not name.isprintable():
        problem = f"Must be 1 to {NAME_CHARACTERS} printable characters."
    elif name != before and name.partition("/")[0] in RESERVED_NAMES:
        problem = f"Must not begin with a path of this API: {', '.join(RESERVED_NAMES)}."
    elif name != before and "@" in name:
        problem = "Must not contain @, which stands before a label or a version."
    else:
        return name
    raise ValidationError(f"name: {problem}", details={"name": [problem]})


def _log(event: str, project_id: UUID, config_id: UUID, actor: str, version: int | None = None) -> None:
    number = "" if version is None else f" version={version}"
    logger.info("%s project_id=%s config_id=%s%s actor=%s", event, project_id, config_id, number, actor)
