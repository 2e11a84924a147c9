from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from core.encryption.fernet import UndecryptableSecretError
from core.errors import ValidationError
from integrations.access.checked_additions import checked_forwarded, checked_headers, checked_parameters
from integrations.access.checked_deployments import (
    NUMBERS,
    checked_models,
    checked_name,
    checked_number,
    checked_prices,
)
from integrations.access.completeness import (
    check_ambient,
    check_complete,
    checked_options,
    checked_secret,
    checked_service_account,
    refuse_foreign,
)
from integrations.access.credentials import (
    credentials_of,
    is_masked,
    is_service_account,
    store_extra,
    store_headers,
    store_secret,
    stored_headers,
)
from integrations.access.destination import destination_of, refuse_to_send_elsewhere, stored_secrets
from integrations.errors import IntegrationExistsError, IntegrationNotFoundError, UnknownProviderError
from integrations.models import ProviderIntegration, called
from integrations.registry import is_known, traits_of
from integrations.transport.addresses import check_base_url, check_form

_SWITCHES = ("enabled", "own_account")


class Default(Enum):
    """Resets a field to the provider's own value: its list of headers, or no limit."""

    OF_PROVIDER = auto()


@dataclass(frozen=True, slots=True)
class IntegrationChange:
    """None leaves a field unchanged. A masked `secret`, secret extra or header keeps the stored value. `options` are
    merged into the stored ones; parameters and headers replace them."""

    secret: str | None = field(default=None, repr=False)
    enabled: bool | None = None
    own_account: bool | None = None
    base_url: str | None = None
    options: Mapping[str, str] | None = None
    secret_extra: Mapping[str, str] | None = field(default=None, repr=False)
    default_parameters: Mapping[str, Any] | None = None
    forced_parameters: Mapping[str, Any] | None = None
    extra_headers: Mapping[str, str] | None = field(default=None, repr=False)
    forward_headers: Sequence[str] | Default | None = None
    weight: int | None = None
    priority: int | None = None
    rpm: int | Default | None = None
    tpm: int | Default | None = None
    models: Sequence[Mapping[str, Any]] | None = None
    prices: Sequence[Mapping[str, Any]] | None = None


def add_integration(
    *, project_id: UUID, provider: str, change: IntegrationChange, name: str = "", trusted: bool = False
) -> ProviderIntegration:
    """Without `name` the integration is named like its kind. Raises UnknownProviderError, IntegrationExistsError,
    ValidationError."""
    if not is_known(provider):
        raise UnknownProviderError(provider)
    name = checked_name(name, provider)
    with transaction.atomic():
        if ProviderIntegration.objects.for_project(project_id).filter(called(name)).exists():
            raise IntegrationExistsError(f"The project has an integration for {name} already.")
        row = ProviderIntegration(project_id=project_id, provider=provider, name=name)
        return _save(row, change, trusted=trusted)


def update_integration(
    *, project_id: UUID, name: str, change: IntegrationChange, trusted: bool = False
) -> ProviderIntegration:
    with transaction.atomic():
        return _save(_locked(project_id, name), change, trusted=trusted)


def apply_change(row: ProviderIntegration, change: IntegrationChange, *, trusted: bool) -> None:
    """Sets the row's fields without saving it. Raises ValidationError, also for operators, if a stored credential would
    go to another host than the one that it was saved for."""
    refuse_foreign(row, traits_of(row.provider), {**(change.options or {}), **(change.secret_extra or {})})
    apply_choice(row, change)
    before, destination, not_given = _access(row), destination_of(row), stored_secrets(row)
    if change.base_url is not None:
        row.base_url = change.base_url.strip().rstrip("/")
    if change.options is not None:
        row.options = {**row.options, **checked_options(change.options)}
    for name in _SWITCHES:
        if getattr(change, name) is not None:
            setattr(row, name, getattr(change, name))
    if change.secret is not None and not is_masked(change.secret):
        store_secret(row, _checked_key(row, change.secret, trusted=trusted))
        not_given.discard("api_key")
    fresh = {
        name: checked_secret(value, name) for name, value in (change.secret_extra or {}).items() if not is_masked(value)
    }
    if fresh:
        store_extra(row, fresh)
    if apply_additions(row, change):
        not_given.discard("extra_headers")
    _check_address(row, trusted=trusted)
    refuse_to_send_elsewhere(destination, row, not_given - set(fresh))
    if _access(row) != before:
        forget_test(row)


def apply_choice(row: ProviderIntegration, change: IntegrationChange) -> None:
    for name in NUMBERS:
        value = getattr(change, name)
        if value is not None:
            setattr(row, name, None if value is Default.OF_PROVIDER else checked_number(name, value))
    if change.models is not None:
        row.served_models = checked_models(change.models)
    if change.prices is not None:
        row.own_prices = checked_prices(change.prices)


def apply_additions(row: ProviderIntegration, change: IntegrationChange) -> bool:
    """Sets the additions to every request. Returns True if the change sets the headers and keeps none of the stored
    values. Raises ValidationError."""
    if change.default_parameters is not None:
        row.default_parameters = checked_parameters("default_parameters", change.default_parameters, may_remove=False)
    if change.forced_parameters is not None:
        row.forced_parameters = checked_parameters("forced_parameters", change.forced_parameters, may_remove=True)
    if change.forward_headers is Default.OF_PROVIDER:
        row.forward_headers = None
    elif change.forward_headers is not None:
        names = checked_forwarded(change.forward_headers)
        # A list that was shown and sent back unchanged still is the provider's own.
        row.forward_headers = None if tuple(names) == traits_of(row.provider).forward_headers else names
    if change.extra_headers is None:
        return False
    given = checked_headers(change.extra_headers)
    kept = {name for name, value in given.items() if is_masked(value)}
    store_headers(row, {**given, **_stored_values(row, kept)})
    return not kept


def forget_test(row: ProviderIntegration) -> None:
    row.last_tested_at, row.last_test_ok, row.last_test_reason = None, None, ""


def remove_integration(*, project_id: UUID, name: str) -> None:
    with transaction.atomic():
        _locked(project_id, name).delete()


def _save(row: ProviderIntegration, change: IntegrationChange, *, trusted: bool) -> ProviderIntegration:
    apply_change(row, change, trusted=trusted)
    row.save()
    return row


def _locked(project_id: UUID, name: str) -> ProviderIntegration:
    row = ProviderIntegration.objects.for_project(project_id).select_for_update().filter(called(name)).first()
    if row is None:
        raise IntegrationNotFoundError(f"The project has no integration for {name}.")
    return row


def _stored_values(row: ProviderIntegration, names: set[str]) -> dict[str, str]:
    try:
        stored = stored_headers(row) if names else {}
    except UndecryptableSecretError:
        stored = {}
    for name in sorted(names):
        if name not in stored:
            place, problem = f"extra_headers.{name}", "there is no stored value that the mask could stand for: enter it"
            raise ValidationError.of_field(place, problem)
    return {name: stored[name] for name in names}


def _access(row: ProviderIntegration) -> tuple[str, str, str, str, dict[str, str]]:
    """Returns the decrypted values that a test's outcome depends on: encrypting the same key gives a different text
    each time."""
    return row.base_url, row.encrypted_secret, row.encrypted_extra, row.encrypted_headers, dict(row.options)


def _checked_key(row: ProviderIntegration, secret: str, *, trusted: bool) -> str:
    if traits_of(row.provider).service_account and is_service_account(secret):
        return checked_service_account(secret, any_token_server=trusted or settings.ALLOW_PRIVATE_UPSTREAMS)
    return checked_secret(secret, "api_key")


def _check_address(row: ProviderIntegration, *, trusted: bool) -> None:
    base_url = check_complete(row, traits_of(row.provider))
    if row.options.get("credentials"):
        check_ambient(credentials_of(row), base_url, trusted=trusted or settings.ALLOW_PRIVATE_UPSTREAMS)
    if trusted:
        check_form(base_url)
    else:
        check_base_url(base_url, allow_private=settings.ALLOW_PRIVATE_UPSTREAMS)
