"""The JSON of data sets."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypedDict
from uuid import UUID

from analytics.datasets.services import Added
from analytics.models.datasets import Dataset, DatasetItem, DatasetVersion
from analytics.wire.texts import without

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
    return {
        "id": row.pk,
        "name": row.name,
        "description": row.description,
        "version": row.version,
        "retention": row.retention,  # type: ignore[typeddict-item]  # the column holds one of DatasetRetention
        "item_count": row.item_count,
        "erased_items": row.erased_items,
        "expired_items": row.expired_items,
        "created_by": row.created_by,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def version_entry(row: DatasetVersion) -> DatasetVersionEntry:
    return {
        "version": row.number,
        "action": row.action,  # type: ignore[typeddict-item]  # the column holds one of DatasetAction
        "items": row.items,
        "created_by": row.created_by,
        "created_at": row.created_at,
    }


def item_entry(row: DatasetItem) -> DatasetItemEntry:
    return {
        "id": row.item_id,
        "position": row.position,
        "added_in": row.added_in,
        "removed_in": row.removed_in,
        "messages": row.messages,
        "variables": row.variables,
        "parameters": row.parameters,
        "expected": row.expected,
        "tags": row.tags,
        "preview": row.preview,
        "source_request_id": row.source_request_id,
        "prompt_config_id": row.prompt_config_id,
        "prompt_version": row.prompt_version,
    }


def item_without_texts(row: DatasetItem) -> dict[str, Any]:
    """Returns an entry as readers without content see it."""
    return without(ITEM_TEXTS, item_entry(row))


def added_entry(added: Added) -> AddedItems:
    left_out: LeftOutRequests = {
        "already_there": added.left_out.get("already_there", 0),
        "no_text": added.left_out.get("no_text", 0),
        "too_large": added.left_out.get("too_large", 0),
        "unreadable": added.left_out.get("unreadable", 0),
    }
    return {"added": added.items, "left_out": left_out, "dataset": dataset_entry(added.dataset)}
