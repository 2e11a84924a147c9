"""Changes the gateway's settings, and records each change with its author."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
from django.core.exceptions import ValidationError
from django.db import transaction

from core.errors import ConflictError, NotFoundError
from core.errors import ValidationError as InvalidError
from gateway.models import GatewaySettings, SettingsChange
from gateway.project_settings.guardrails import GuardrailSettings
from integrations.registry import is_known
from integrations.selectors import deployment_names

logger = logging.getLogger("gateway.settings")

_NOT_SETTINGS = frozenset({"id", "project", "updated_at"})
FIELDS = tuple(field.name for field in GatewaySettings._meta.concrete_fields if field.name not in _NOT_SETTINGS)


def current_settings(project_id: UUID) -> GatewaySettings:
    """Returns the project's row, or an unsaved one of defaults."""
    return GatewaySettings.objects.for_project(project_id).first() or GatewaySettings(project_id=project_id)


def replace_settings(*, project_id: UUID, values: Mapping[str, Any], actor: str) -> GatewaySettings:
    """Sets every field in `values`, which have been validated; the other fields stay."""
    with transaction.atomic():
        row = _locked(project_id)
        before = settings_values(row)
        if problem := unknown_provider(project_id, values.get("fallback_order", []), row.fallback_order):
            raise InvalidError(f"fallback_order: {problem}", details={"fallback_order": [problem]})
        for name, value in values.items():
            setattr(row, name, value)
        row.save()
        _note_change(row, before, actor)
    return row


def save_settings(row: GatewaySettings, *, actor: str) -> None:
    """Saves a row that a form has changed."""
    with transaction.atomic():
        current = GatewaySettings.objects.for_project(row.project_id).select_for_update().first()
        before = settings_values(current or GatewaySettings(project_id=row.project_id))
        row.save()
        _note_change(row, before, actor)


def restore_settings(*, project_id: UUID, change_id: int, actor: str) -> GatewaySettings:
    """Gives the fields of a change the values that they had before it. Raises NotFoundError, and ConflictError for
    values that are no longer valid."""
    change = SettingsChange.objects.for_project(project_id).filter(pk=change_id).first()
    if change is None:
        raise NotFoundError("The project's settings had no such change.", code="change_not_found")
    values = {name: _from_json(name, old) for name, (old, _) in change.changes.items() if name in FIELDS}
    _check(values)
    order, present = values.get("fallback_order", []), current_settings(project_id).fallback_order
    if problem := unknown_provider(project_id, order, present):
        raise _not_restored("fallback_order", problem, {"fallback_order": [problem]})
    return replace_settings(project_id=project_id, values=values, actor=actor)


def unknown_provider(project_id: UUID, names: Sequence[str], known: Sequence[str]) -> str:
    """Returns what is wrong with an order of fallbacks: it names neither a provider nor a deployment of the project.
    Names that stood there before, which are `known`, stay when their deployment is gone. Empty where nothing is."""
    unknown = [name for name in names if not is_known(name) and name not in known]
    if unknown:
        deployments = deployment_names(project_id)
        unknown = [name for name in unknown if name not in deployments]
    return f"Unknown provider: {unknown[0]}." if unknown else ""


def _check(values: Mapping[str, Any]) -> None:
    try:
        GatewaySettings(**values).full_clean(exclude=["project"], validate_unique=False)
    except ValidationError as error:
        name, (problem, *_) = next(iter(error.message_dict.items()))
        raise _not_restored(name, problem, error.message_dict) from None


def _not_restored(name: str, problem: str, details: dict[str, Any]) -> ConflictError:
    message = f"What it was before cannot be set any more: {name}: {problem}"
    return ConflictError(message, code="cannot_be_restored", details=details)


def settings_values(row: GatewaySettings) -> dict[str, Any]:
    """Returns the values by field, as JSON: money as text with all its places, guardrails as the whole object."""
    return {name: _to_json(name, getattr(row, name)) for name in FIELDS}


def whole_guardrails(value: Mapping[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = msgspec.to_builtins(msgspec.convert(value, GuardrailSettings))
    return whole


def _to_json(name: str, value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return whole_guardrails(value) if name == "guardrails" else value


def _from_json(name: str, value: Any) -> Any:
    return Decimal(value) if name.endswith("_usd") and value is not None else value


def _locked(project_id: UUID) -> GatewaySettings:
    # A concurrent second call finds the row of the first.
    GatewaySettings.objects.get_or_create(project_id=project_id)
    return GatewaySettings.objects.select_for_update().get(project_id=project_id)


def _note_change(row: GatewaySettings, before: Mapping[str, Any], actor: str) -> None:
    row.refresh_from_db()
    changes = {name: [before[name], now] for name, now in settings_values(row).items() if now != before[name]}
    if not changes:
        return
    SettingsChange.objects.create(project_id=row.project_id, actor=actor, changes=changes)
    logger.info("settings.changed project_id=%s fields=%s actor=%s", row.project_id, ",".join(sorted(changes)), actor)
