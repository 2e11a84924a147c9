from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import msgspec
from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from core.encryption.fernet import UndecryptableSecretError
from integrations.access.credentials import credentials_of
from integrations.connectivity.exchange import NoAnswerError, Sender
from integrations.model_lists.fetch import WITHOUT_LIST, fetch_list
from integrations.model_lists.listed import ListedModel
from integrations.models import ProviderIntegration, ProviderModelList
from integrations.providers.base import Credentials
from integrations.providers.errors import ProviderError
from integrations.signals import model_list_changed
from integrations.transport.ambient import resolved

logger = logging.getLogger("integrations.models")

INTERVAL = timedelta(hours=1)
_MAX_LISTS = 200
_THREADS = 8


@dataclass(frozen=True, slots=True)
class Refreshed:
    provider: str
    project_id: str
    models: int
    problem: str = ""


def is_any_due() -> bool:
    return bool(_due(every=False, project_id=None))


def refresh_lists(*, every: bool = False, project_id: UUID | None = None) -> list[Refreshed]:
    due = _due(every=every, project_id=project_id)
    now = timezone.now()
    # Two runs at once share the work: a list that one has taken is not due for the other.
    ProviderModelList.objects.bulk_create(
        [ProviderModelList(integration=row, tried_at=now) for row in due],
        update_conflicts=True,
        unique_fields=["integration"],
        update_fields=["tried_at"],
    )
    readable = [(row, credentials) for row in due if (credentials := _credentials(row)) is not None]
    # The threads make no database calls.
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        found = list(pool.map(_read, [credentials for _, credentials in readable]))
    return [_store(row, listed, now) for (row, _), listed in zip(readable, found, strict=True)]


def _due(*, every: bool, project_id: UUID | None) -> list[ProviderIntegration]:
    rows = ProviderIntegration.objects.filter(enabled=True).exclude(provider__in=WITHOUT_LIST)
    if project_id is not None:
        rows = rows.filter(project_id=project_id)
    if not every:
        rows = rows.filter(
            Q(model_list=None)
            | Q(model_list__tried_at__lt=timezone.now() - INTERVAL)
            | Q(model_list__tried_at__lt=F("updated_at"))
        )
    ordered = rows.order_by(F("model_list__tried_at").asc(nulls_first=True), "pk")
    return list(ordered if every else ordered[:_MAX_LISTS])


def _credentials(row: ProviderIntegration) -> Credentials | None:
    try:
        return resolved(credentials_of(row))
    except UndecryptableSecretError:
        return None  # The integration's own list and test say so.


def _read(credentials: Credentials) -> tuple[ListedModel, ...] | str:
    """Returns the models, or the name of the problem without the provider's text, which may quote a key."""
    try:
        return fetch_list(credentials, Sender(allow_private=settings.ALLOW_PRIVATE_UPSTREAMS))
    except NoAnswerError as error:
        return error.reason.value
    except ProviderError as error:
        return error.kind.value


def _store(row: ProviderIntegration, found: tuple[ListedModel, ...] | str, now: datetime) -> Refreshed:
    project_id = str(row.project_id)
    if isinstance(found, str):
        logger.info("models.unread project_id=%s provider=%s reason=%s", project_id, row.provider, found)
        return Refreshed(row.provider, project_id, 0, found)
    listed = msgspec.to_builtins(found)
    stored = ProviderModelList.objects.filter(integration=row)
    before = stored.values_list("base_url", "options", "listed").first()
    stored.update(base_url=row.base_url, options=row.options, listed=listed, listed_at=now)
    if before != (row.base_url, row.options, listed):
        model_list_changed.send(sender=ProviderModelList, project_id=row.project_id)
    return Refreshed(row.provider, project_id, len(found))
