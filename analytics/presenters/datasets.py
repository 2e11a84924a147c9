from __future__ import annotations

from uuid import UUID

from analytics.datasets import selectors
from analytics.datasets.wire import dataset_entry, item_entry, item_without_texts, version_entry
from analytics.models.datasets import Dataset
from core.wire.pagination import Listing, Page


def datasets(project_id: UUID, page: Page) -> Listing:
    found = selectors.list_datasets(project_id)
    return Listing(found.count(), [dataset_entry(row) for row in found[page.offset : page.offset + page.limit]])


def versions(dataset: Dataset, page: Page) -> Listing:
    found = selectors.list_versions(dataset)
    return Listing(found.count(), [version_entry(row) for row in found[page.offset : page.offset + page.limit]])


def items(
    dataset: Dataset, page: Page, *, version: int | None = None, tag: str = "", with_texts: bool = True
) -> Listing:
    """Returns the items of a version. Raises ValidationError if it does not exist."""
    found = selectors.list_items(dataset, version=version, tag=tag)
    shown = item_entry if with_texts else item_without_texts
    return Listing(found.count(), [{**shown(row)} for row in found[page.offset : page.offset + page.limit]])
