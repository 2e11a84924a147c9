from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from rest_framework.exceptions import ValidationError as RejectedError

from core.errors import ConflictError, NotFoundError
from core.errors import ValidationError as InvalidError
from core.http.exception_handler import flat_details
from gateway.models import GatewaySettings, SettingsChange
from gateway.project_settings.api_fields import ValuesSerializer
from gateway.project_settings.declaration import declared
from gateway.project_settings.settings import ProjectSettings
from gateway.project_settings.values import stored, wire_values
from gateway.selectors import project_settings
from integrations.registry import is_known
from integrations.selectors import deployment_names

logger = logging.getLogger("gateway.settings")


def replace_settings(*, project_id: UUID, values: Mapping[str, Any], actor: str) -> GatewaySettings:
    with transaction.atomic():
        row = _locked(project_id)
        before = row.settings
        if problem := unknown_provider(project_id, values.get("fallback_order", []), before.fallback_order):
            raise InvalidError(f"fallback_order: {problem}", details={"fallback_order": [problem]})
        row.values = {**row.values, **stored(values)}
        row.save()
        _note_change(row, before, actor)
    return row


def restore_settings(*, project_id: UUID, change_id: int, actor: str) -> GatewaySettings:
    """Raises NotFoundError, and ConflictError for values that are no longer valid."""
    change = SettingsChange.objects.for_project(project_id).filter(pk=change_id).first()
    if change is None:
        raise NotFoundError("The project's settings had no such change.", code="change_not_found")
    values = _valid({name: old for name, (old, _) in change.changes.items()})
    order, present = values.get("fallback_order", []), project_settings(project_id).fallback_order
    if problem := unknown_provider(project_id, order, present):
        raise _not_restored("fallback_order", problem, {"fallback_order": [problem]})
    return replace_settings(project_id=project_id, values=values, actor=actor)


def unknown_provider(project_id: UUID, names: Sequence[str], known: Sequence[str]) -> str:
    """Returns what is wrong with a fallback order; empty if each name is a provider, a deployment or in `known`.

    `known` holds the previous names: they stay valid after their deployment is removed.
    """
    unknown = [name for name in names if not is_known(name) and name not in known]
    if unknown:
        deployments = deployment_names(project_id)
        unknown = [name for name in unknown if name not in deployments]
    return f"Unknown provider: {unknown[0]}." if unknown else ""


def _valid(values: Mapping[str, Any]) -> Mapping[str, Any]:
    known = {one.name for one in declared(ProjectSettings)} & values.keys()
    given = ValuesSerializer(data=wire_values({name: values[name] for name in known}), partial=True)
    try:
        given.is_valid(raise_exception=True)
    except RejectedError as error:
        details = flat_details(error.detail)
        name, (problem, *_) = next(iter(details.items()))
        raise _not_restored(name, problem, details) from None
    found: Mapping[str, Any] = given.validated_data
    return found


def _not_restored(name: str, problem: str, details: dict[str, Any]) -> ConflictError:
    message = f"What it was before cannot be set any more: {name}: {problem}"
    return ConflictError(message, code="cannot_be_restored", details=details)


def _locked(project_id: UUID) -> GatewaySettings:
    # A concurrent second call finds the row of the first.
    GatewaySettings.objects.get_or_create(project_id=project_id)
    return GatewaySettings.objects.select_for_update().get(project_id=project_id)


def _note_change(row: GatewaySettings, before: ProjectSettings, actor: str) -> None:
    old, new = stored(before), stored(row.settings)
    changes = {name: [old[name], value] for name, value in new.items() if value != old[name]}
    if not changes:
        return
    SettingsChange.objects.create(project_id=row.project_id, actor=actor, changes=changes)
    logger.info("settings.changed project_id=%s fields=%s actor=%s", row.project_id, ",".join(sorted(changes)), actor)
