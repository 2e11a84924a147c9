from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypedDict
from uuid import UUID

from analytics.datasets.services import Added
from analytics.models.datasets import Dataset, DatasetItem, DatasetVersion
from analytics.wire.texts import without
from core.wire.shown import shown_as

ITEM_TEXTS = ("messages", "variables", "parameters", "expected", "preview")


class DatasetEntry(TypedDict):
    id: UUID
    name: str
    description: str
    version: int
    retention: Literal["project", "kept"]
    item_count: int
    erased_items: int
    expired_items: int
    created_by: str
    created_at: datetime
    updated_at: datetime


class DatasetVersionEntry(TypedDict):
    version: int
    action: Literal["added", "changed", "removed"]
    items: int
    created_by: str
    created_at: datetime


class DatasetItemEntry(TypedDict):
    id: UUID
    position: int
    added_in: int
    removed_in: int | None
    messages: list[dict[str, Any]] | None
    variables: dict[str, Any] | None
    parameters: dict[str, Any] | None
    expected: Any
    tags: list[str]
    preview: str | None
    source_request_id: UUID | None
    prompt_config_id: UUID | None
    prompt_version: int | None


class LeftOutRequests(TypedDict):
    already_there: int
    no_text: int
    too_large: int
    unreadable: int


class AddedItems(TypedDict):
    added: int
    left_out: LeftOutRequests
    dataset: DatasetEntry


def dataset_entry(row: Dataset) -> DatasetEntry:
    return shown_as(DatasetEntry, row)


def version_entry(row: DatasetVersion) -> DatasetVersionEntry:
    return shown_as(DatasetVersionEntry, row, version=row.number)


def item_entry(row: DatasetItem) -> DatasetItemEntry:
    return shown_as(DatasetItemEntry, row, id=row.item_id, preview=row.preview)


def item_without_texts(row: DatasetItem) -> dict[str, Any]:
    return without(ITEM_TEXTS, item_entry(row))


def added_entry(added: Added) -> AddedItems:
    left_out = {name: added.left_out.get(name, 0) for name in LeftOutRequests.__annotations__}
    return shown_as(AddedItems, added, added=added.items, left_out=left_out, dataset=dataset_entry(added.dataset))
