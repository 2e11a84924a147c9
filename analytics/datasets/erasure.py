"""Deletes items from every version: those of erased requests and sessions, and those past their retention."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet

from analytics.datasets.selectors import get_item
from analytics.datasets.signals import GoneItems, Reason, items_gone
from analytics.identifiers import id_hash
from analytics.models.datasets import Dataset, DatasetItem, DatasetRetention
from core.chunks import chunks

logger = logging.getLogger("analytics.datasets")


def delete_items_of(project_id: UUID, request_ids: Iterable[UUID | str]) -> int:
    hashes = [id_hash(str(request_id)) for request_id in request_ids]
    return sum(_delete(_of_requests(project_id, some), Reason.ERASED) for some in chunks(hashes))


def delete_items_of_request(project_id: UUID, request_hash: str) -> int:
    return _delete(_of_requests(project_id, [request_hash]), Reason.ERASED)


def delete_items_of_session(project_id: UUID, session_hash: str, until: datetime) -> int:
    """Deletes the items of a deleted session's requests up to a moment; returns their number.

    Finds them by the hash of the session, since a set may keep items longer than the log keeps requests.
    """
    return _delete(_of_session(project_id, session_hash).filter(retained_from__lte=until), Reason.ERASED)


def has_items_of_session(project_id: UUID, session_hash: str) -> bool:
    return _of_session(project_id, session_hash).exists()


def has_items_of_request(project_id: UUID, request_id: UUID) -> bool:
    return _of_requests(project_id, [id_hash(str(request_id))]).exists()


def delete_items_before(project_id: UUID, moment: datetime) -> int:
    """Deletes items older than `moment` in sets that keep none longer than their project; returns their number."""
    found = _of_project(project_id).filter(dataset__retention=DatasetRetention.PROJECT, retained_from__lt=moment)
    return _delete(found, Reason.EXPIRED)


def erase_item(dataset: Dataset, item_id: UUID) -> None:
    """Deletes an item from every version, even if the latest does not have it. Raises DatasetItemNotFoundError."""
    if not _delete(DatasetItem.objects.filter(dataset=dataset, item_id=item_id), Reason.ERASED):
        get_item(dataset, item_id)


def _of_project(project_id: UUID) -> QuerySet[DatasetItem]:
    return DatasetItem.objects.filter(dataset__project_id=project_id)


def _of_requests(project_id: UUID, hashes: Sequence[str]) -> QuerySet[DatasetItem]:
    return _of_project(project_id).filter(request_hash__in=hashes)


def _of_session(project_id: UUID, session_hash: str) -> QuerySet[DatasetItem]:
    return _of_project(project_id).filter(session_hash=session_hash)


def _delete(found: QuerySet[DatasetItem], reason: Reason) -> int:
    deleted = 0
    for dataset_id in list(found.order_by("dataset_id").values_list("dataset_id", flat=True).distinct()):
        with transaction.atomic():
            # The lock comes first, so that no version is made of rows that are being deleted.
            dataset = Dataset.objects.select_for_update().filter(pk=dataset_id).first()
            if dataset is not None:
                deleted += _delete_of(dataset, found.filter(dataset_id=dataset_id), reason)
    return deleted


def _delete_of(dataset: Dataset, found: QuerySet[DatasetItem], reason: Reason) -> int:
    rows = list(found.order_by().values_list("pk", "item_id", "removed_in"))
    gone = frozenset(item_id for _, item_id, _ in rows)
    if not gone:
        return 0
    for ids in chunks([pk for pk, _, _ in rows]):
        DatasetItem.objects.filter(pk__in=ids).delete()
    latest = sum(removed_in is None for _, _, removed_in in rows)
    counter = "erased_items" if reason is Reason.ERASED else "expired_items"
    counts = {"item_count": F("item_count") - latest, counter: F(counter) + len(gone)}
    Dataset.objects.filter(pk=dataset.pk).update(**counts)
    items_gone.send(Dataset, gone=GoneItems(dataset.project_id, dataset.pk, gone, reason))
    logger.info("dataset.items_gone dataset_id=%s items=%d reason=%s", dataset.pk, len(gone), reason)
    return len(gone)
