"""The services that add, change and remove a project's trace destinations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from analytics.errors import TooManyTraceDestinationsError, TraceDestinationExistsError, TraceDestinationNotFoundError
from analytics.models import TraceDestination
from analytics.models.trace_destinations import MAX_DESTINATIONS
from core.encryption.fernet import UndecryptableError, decrypt, encrypt
from core.errors import ValidationError
from core.models import Project
from integrations.access.checked_additions import FRAMING_HEADERS, checked_headers
from integrations.access.credentials import MASK, is_masked
from integrations.transport.addresses import check_base_url

_PATH = "/v1/traces"
# The exporter's own headers.
_RESERVED = FRAMING_HEADERS | {"idempotency-key", "user-agent"}


def list_destinations(project_id: UUID) -> QuerySet[TraceDestination]:
    return TraceDestination.objects.for_project(project_id).prefetch_related("statuses")


def get_destination(project_id: UUID, destination_id: UUID) -> TraceDestination:
    """Returns a destination of the project. Raises TraceDestinationNotFoundError."""
    row = list_destinations(project_id).filter(pk=destination_id).first()
    if row is None:
        raise TraceDestinationNotFoundError
    return row


def add_destination(project_id: UUID, values: Mapping[str, Any]) -> TraceDestination:
    """Returns the new destination. Raises TooManyTraceDestinationsError, TraceDestinationExistsError and
    ValidationError."""
    with transaction.atomic():
        # Two calls at once would each find room for one more.
        Project.objects.select_for_update().get(pk=project_id)
        if TraceDestination.objects.for_project(project_id).count() >= MAX_DESTINATIONS:
            raise TooManyTraceDestinationsError(MAX_DESTINATIONS)
        return _save(TraceDestination(project_id=project_id), values)


def change_destination(project_id: UUID, destination_id: UUID, values: Mapping[str, Any]) -> TraceDestination:
    """Returns the destination with these values; one that is not among them stays as it is. Raises
    TraceDestinationNotFoundError, TraceDestinationExistsError and ValidationError."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project_id)
        return _save(get_destination(project_id, destination_id), values)


def remove_destination(project_id: UUID, destination_id: UUID) -> None:
    """Removes a destination; what waits for it is dropped. Raises TraceDestinationNotFoundError."""
    get_destination(project_id, destination_id).delete()


def headers_of(row: TraceDestination) -> dict[str, str]:
    """Returns the decrypted headers. Raises core.encryption.fernet.UndecryptableError."""
    stored: dict[str, str] = json.loads(decrypt(row.encrypted_headers)) if row.encrypted_headers else {}
    return stored


def masked_headers(row: TraceDestination) -> dict[str, str]:
    """Returns the names of the headers, each with the mask as its value; none when they cannot be decrypted."""
    try:
        return dict.fromkeys(headers_of(row), MASK)
    except UndecryptableError:
        return {}


def completed_endpoint(given: str) -> str:
    """Returns the address that spans are posted to."""
    endpoint = given.strip().rstrip("/")
    # The base address, as in OTEL_EXPORTER_OTLP_ENDPOINT, is completed as every exporter does.
    return endpoint if endpoint.endswith(_PATH) else endpoint + _PATH


def _save(row: TraceDestination, values: Mapping[str, Any]) -> TraceDestination:
    stored_for = _origin(row.endpoint)
    for name in ("name", "enabled", "sampling_ratio", "include_content"):
        setattr(row, name, values.get(name, getattr(row, name)))
    if "endpoint" in values:
        row.endpoint = _checked_endpoint(values["endpoint"])
    has_moved = stored_for != _origin(row.endpoint)
    if "headers" in values:
        _set_headers(row, checked_headers(values["headers"], "headers", _RESERVED), has_moved=has_moved)
    elif row.encrypted_headers and has_moved:
        raise ValidationError.of_field("headers", "were entered for another host: enter them again")
    others = TraceDestination.objects.for_project(row.project_id).exclude(pk=row.pk)
    if others.filter(name=row.name).exists():
        raise TraceDestinationExistsError(f"The project has a trace destination called {row.name} already.")
    row.save()
    return row


def _checked_endpoint(given: str) -> str:
    endpoint = completed_endpoint(given)
    check_base_url(endpoint, allow_private=settings.ALLOW_PRIVATE_UPSTREAMS, field="endpoint")
    return endpoint


def _set_headers(row: TraceDestination, given: dict[str, str], *, has_moved: bool) -> None:
    """Replaces the headers. A masked value stands for the stored one, which goes to no other host."""
    kept = [name for name, value in given.items() if is_masked(value)]
    if kept:
        stored = _readable_headers(row)
        for name in kept:
            if has_moved or name not in stored:
                raise ValidationError.of_field(
                    f"headers.{name}", "there is no value for this host that the mask could stand for"
                )
            given[name] = stored[name]
    row.encrypted_headers = encrypt(json.dumps(given)) if given else ""


def _readable_headers(row: TraceDestination) -> dict[str, str]:
    try:
        return headers_of(row)
    except UndecryptableError:
        return {}


def _origin(endpoint: str) -> tuple[str, str]:
    parts = urlsplit(endpoint)
    return parts.scheme, parts.netloc
