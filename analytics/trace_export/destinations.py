from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from analytics.models import TraceDestination
from analytics.models.trace_destinations import MAX_DESTINATIONS
from core.encryption.fernet import UndecryptableSecretError, decrypt, encrypt
from core.errors import ValidationError
from core.resources.declaration import Resource
from integrations.access.checked_additions import FRAMING_HEADERS, checked_headers
from integrations.access.credentials import MASK, is_masked
from integrations.transport.addresses import check_base_url

_PATH = "/v1/traces"
# The exporter's own headers.
_RESERVED = FRAMING_HEADERS | {"idempotency-key", "user-agent"}


class TraceDestinations(Resource[TraceDestination]):
    model = TraceDestination
    maximum = MAX_DESTINATIONS
    missing = ("trace_destination_not_found", "The project has no such trace destination.")
    taken = ("trace_destination_exists", "The project has a trace destination called {key} already.")
    full = (
        "too_many_trace_destinations",
        "A project has at most {maximum} trace destinations: remove one first.",
    )

    def rows(self, project_id: UUID) -> QuerySet[TraceDestination]:
        return super().rows(project_id).prefetch_related("statuses")

    def fill(self, row: TraceDestination, values: Mapping[str, Any]) -> None:
        """Completes the endpoint. Headers stay with the host they were entered for."""
        stored_for = _origin(row.endpoint)
        super().fill(row, {name: value for name, value in values.items() if name != "headers"})
        if "endpoint" in values:
            row.endpoint = _checked_endpoint(row.endpoint)
        has_moved = stored_for != _origin(row.endpoint)
        if "headers" in values:
            _set_headers(row, checked_headers(values["headers"], "headers", _RESERVED), has_moved=has_moved)
        elif row.encrypted_headers and has_moved:
            raise ValidationError.of_field("headers", "were entered for another host: enter them again")


DESTINATIONS = TraceDestinations()


def headers_of(row: TraceDestination) -> dict[str, str]:
    stored: dict[str, str] = json.loads(decrypt(row.encrypted_headers)) if row.encrypted_headers else {}
    return stored


def masked_headers(row: TraceDestination) -> dict[str, str]:
    """Returns the mask for each header name; {} if the headers cannot be decrypted."""
    try:
        return dict.fromkeys(headers_of(row), MASK)
    except UndecryptableSecretError:
        return {}


def completed_endpoint(given: str) -> str:
    endpoint = given.strip().rstrip("/")
    # The base address, as in OTEL_EXPORTER_OTLP_ENDPOINT, is completed as every exporter does.
    return endpoint if endpoint.endswith(_PATH) else endpoint + _PATH


def _checked_endpoint(given: str) -> str:
    endpoint = completed_endpoint(given)
    check_base_url(endpoint, allow_private=settings.ALLOW_PRIVATE_UPSTREAMS, field="endpoint")
    return endpoint


def _set_headers(row: TraceDestination, given: dict[str, str], *, has_moved: bool) -> None:
    """A masked value stands for the stored one, which must not go to another host."""
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
    except UndecryptableSecretError:
        return {}


def _origin(endpoint: str) -> tuple[str, str]:
    parts = urlsplit(endpoint)
    return parts.scheme, parts.netloc


@dataclass(frozen=True, slots=True)
class ExportStatus:
    last_success_at: datetime | None
    last_error: str
    last_error_at: datetime | None
    waiting_spans: int
    oldest_waiting_at: datetime | None
    sent_spans: int
    dropped_spans: int
    rejected_spans: int

    @property
    def is_failing(self) -> bool:
        """Returns whether the last thing that happened is an error."""
        failed, succeeded = self.last_error_at, self.last_success_at
        return failed is not None and (succeeded is None or failed > succeeded)


def status_of(row: TraceDestination) -> ExportStatus:
    hosts = list(row.statuses.all())
    failed = max((one for one in hosts if one.last_error_at), key=lambda one: str(one.last_error_at), default=None)
    return ExportStatus(
        last_success_at=max((one.last_success_at for one in hosts if one.last_success_at), default=None),
        last_error=failed.last_error if failed else "",
        last_error_at=failed.last_error_at if failed else None,
        waiting_spans=sum(one.waiting_spans for one in hosts),
        oldest_waiting_at=min((one.oldest_waiting_at for one in hosts if one.oldest_waiting_at), default=None),
        sent_spans=sum(one.sent_spans for one in hosts),
        dropped_spans=sum(one.dropped_spans for one in hosts),
        rejected_spans=sum(one.rejected_spans for one in hosts),
    )
