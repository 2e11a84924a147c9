from __future__ import annotations

import logging
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from core.encryption.fernet import UndecryptableSecretError
from core.errors import ValidationError
from integrations.access.credentials import credentials_of, is_masked
from integrations.connectivity.exchange import Sender
from integrations.connectivity.outcomes import ConnectionOutcome, Reason
from integrations.connectivity.trial import try_credentials
from integrations.errors import IntegrationNotFoundError
from integrations.models import ProviderIntegration, called
from integrations.providers.base import Credentials
from integrations.registry import is_known
from integrations.selectors import SANDBOX, running_sandbox
from integrations.services import IntegrationChange, apply_change
from integrations.transport.ambient import resolved

logger = logging.getLogger("integrations.connectivity")

_UNREADABLE = "What is stored can no longer be decrypted: enter the credential again."


def try_integration(
    *, project_id: UUID, name: str, provider: str = "", change: IntegrationChange | None = None, trusted: bool = False
) -> ConnectionOutcome:
    """Tests the stored integration and stores the outcome; with `change` it tests what the change would produce, and
    stores nothing.

    `provider` is the kind of a new integration, by default its name. `trusted` marks an operator, as in `services`.
    Raises IntegrationNotFoundError, ValidationError.
    """
    row = ProviderIntegration.objects.for_project(project_id).filter(called(name)).first()
    provider = row.provider if row is not None else provider or name
    if not is_known(provider):
        raise IntegrationNotFoundError("There is no such provider.")
    if row is None and not _is_change(change):
        outcome = _try_sandbox(project_id, provider)
    else:
        tested = row or ProviderIntegration(project_id=project_id, provider=provider, name=name)
        outcome = _try_changed(tested, change, trusted=trusted)
    logger.info(
        "integration.tested project_id=%s provider=%s reason=%s status=%s", project_id, provider, outcome.reason,
        outcome.status,
    )  # fmt: skip
    return outcome


def _try_changed(row: ProviderIntegration, change: IntegrationChange | None, *, trusted: bool) -> ConnectionOutcome:
    as_stored = _access(row)
    if change is not None and _is_change(change):
        _refuse_to_send_elsewhere(row, change, trusted=trusted)
        apply_change(row, change, trusted=trusted)
    credentials = _access(row)
    if credentials is None:
        outcome = ConnectionOutcome(False, Reason.UNREADABLE_SECRET, _UNREADABLE)
    else:
        outcome = try_credentials(credentials, Sender(allow_private=settings.ALLOW_PRIVATE_UPSTREAMS))
    if not row._state.adding and credentials == as_stored:
        remember(row, outcome)
    return outcome


def _refuse_to_send_elsewhere(row: ProviderIntegration, change: IntegrationChange, *, trusted: bool) -> None:
    """Without this check, a test with only the address changed would reveal the stored secret and leave no trace in the
    row."""
    moved = change.base_url is not None and change.base_url.strip().rstrip("/") != row.base_url
    if not moved or trusted:
        return
    given = [value for value in (change.secret, *(change.secret_extra or {}).values()) if value]
    if _are_stored(given) and (row.encrypted_secret or row.encrypted_extra):
        raise _not_elsewhere("api_key", "the credential")
    # An empty set of headers also counts as entered anew.
    headers = change.extra_headers
    if row.encrypted_headers and (headers is None or any(is_masked(str(value)) for value in headers.values())):
        raise _not_elsewhere("extra_headers", "their values")


def _are_stored(given: list[str]) -> bool:
    return not given or any(is_masked(value) for value in given)


def _not_elsewhere(name: str, noun: str) -> ValidationError:
    problem = f"enter {noun} again to test at another address"
    return ValidationError.of_field(name, problem)


def _try_sandbox(project_id: UUID, provider: str) -> ConnectionOutcome:
    found = running_sandbox(project_id) if provider == SANDBOX else []
    if not found:
        raise IntegrationNotFoundError(f"The project has no integration for {provider}.")
    return try_credentials(found[0], Sender(allow_private=True))


def remember(row: ProviderIntegration, outcome: ConnectionOutcome) -> None:
    """Sends no signal, since no field that the gateway reads has changed. An integration changed meanwhile gets no
    outcome."""
    ProviderIntegration.objects.filter(pk=row.pk, updated_at=row.updated_at).update(
        last_tested_at=timezone.now(), last_test_ok=outcome.ok, last_test_reason=outcome.reason.value
    )


def _access(row: ProviderIntegration) -> Credentials | None:
    try:
        return resolved(credentials_of(row))
    except UndecryptableSecretError:
        return None


def _is_change(change: IntegrationChange | None) -> bool:
    if change is None:
        return False
    parts = (change.secret, change.base_url, change.options, change.secret_extra, change.extra_headers)
    return any(part is not None for part in parts)
