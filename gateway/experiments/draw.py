from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTransform

from analytics.datasets.errors import DatasetNotFoundError
from analytics.datasets.selectors import get_dataset, list_items
from analytics.identifiers import id_hash
from analytics.models.datasets import Dataset, DatasetItem
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_samples import SampledRequest, SampleOrder, ShadowedRequest, sample_requests
from core.chunks import chunks
from core.errors import ValidationError
from gateway.models import ExperimentItem

_MAX_PREVIEW_CHARACTERS = 300
_LIMITS = ("max_tokens", "max_completion_tokens")
# The texts of an item are large; an experiment reads them when it asks for answers.
_COLUMNS = (
    "item_id", "tag_text", "preview", "input_hash", "prompt_config_id", "prompt_version", "source_request_id",
    "request_hash", "session_hash", "retained_from",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawn:
    """The items in order, without an experiment yet. `input_hashes` has one for each data-set item, `requests` the past
    requests."""

    items: Sequence[ExperimentItem]
    input_hashes: Sequence[str] = ()
    requests: Sequence[SampledRequest] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class DatasetVersion:
    dataset: Dataset
    number: int

    @property
    def rows(self) -> QuerySet[DatasetItem]:
        return list_items(self.dataset, version=self.number)


def version_of(project_id: UUID, dataset_id: UUID, number: int | None) -> DatasetVersion:
    """The latest version without a number. Raises ValidationError, which names the field."""
    try:
        dataset = get_dataset(project_id, dataset_id)
    except DatasetNotFoundError:
        raise ValidationError.of_field("dataset_id", "The project has no such data set.") from None
    if number is not None and not 1 <= number <= dataset.version:
        raise ValidationError.of_field("dataset_version", f"The data set has the versions 1 to {dataset.version}.")
    return DatasetVersion(dataset, dataset.version if number is None else number)


def draw_requests(project_id: UUID, filters: RequestFilter, order: SampleOrder, *, limit: int) -> Drawn:
    sample = sample_requests(project_id, filters, order, limit=limit)
    return Drawn([item_of_request(row, position) for position, row in enumerate(sample, start=1)], requests=sample)


def draw_dataset(version: DatasetVersion, *, limit: int) -> Drawn:
    """Orders items by the hash of their ids, so that any prefix of them is a random sample."""
    ids: list[UUID] = list(version.rows.order_by().values_list("item_id", flat=True))
    chosen = sorted(ids, key=lambda item_id: id_hash(str(item_id)))[:limit]
    rows = {row.item_id: row for row in _rows(version, chosen)}
    drawn = [rows[item_id] for item_id in chosen if item_id in rows]
    return Drawn([_of_row(*item) for item in enumerate(drawn, start=1)], [row.input_hash for row in drawn])


def some_expected(version: DatasetVersion, drawn: Drawn) -> bool:
    with_one = version.rows.filter(expected__isnull=False).order_by()
    return any(with_one.filter(item_id__in=some).exists() for some in chunks(_ids_of(drawn)))


def parameters_of(version: DatasetVersion, drawn: Drawn) -> Iterator[dict[str, Any]]:
    found: set[str] = set()
    columns = {name: KeyTransform(name, "parameters") for name in ("model", "models", *_LIMITS)}
    for some in chunks(_ids_of(drawn)):
        rows = version.rows.filter(item_id__in=some).annotate(**{f"asked_{name}": one for name, one in columns.items()})
        for row in rows.values(*(f"asked_{name}" for name in columns)):
            fields = {name: row[f"asked_{name}"] for name in columns if row[f"asked_{name}"] is not None}
            if (text := json.dumps(fields, sort_keys=True)) not in found:
                found.add(text)
                yield fields


def _rows(version: DatasetVersion, ids: Sequence[UUID]) -> Iterator[DatasetItem]:
    for some in chunks(ids):
        yield from version.rows.filter(item_id__in=some).only(*_COLUMNS)


def _ids_of(drawn: Drawn) -> list[UUID]:
    return [item.dataset_item_id for item in drawn.items if item.dataset_item_id is not None]


def item_of_request(row: SampledRequest | ShadowedRequest, position: int = 0) -> ExperimentItem:
    return ExperimentItem(
        position=position,
        request_id=row.request_id,
        requested_at=row.ts,
        request_hash=id_hash(str(row.request_id)),
        session_hash=id_hash(row.session_id) if row.session_id else "",
        preview=row.prompt_preview.replace("\x00", "")[:_MAX_PREVIEW_CHARACTERS],
        prompt_config_id=row.prompt_config_id if row.prompt_config_id.int else None,
        prompt_version=row.prompt_version,
    )


def _of_row(position: int, row: DatasetItem) -> ExperimentItem:
    return ExperimentItem(
        position=position,
        request_id=row.source_request_id,
        requested_at=row.retained_from if row.source_request_id is not None else None,
        request_hash=row.request_hash,
        session_hash=row.session_hash,
        dataset_item_id=row.item_id,
        tags=row.tags,
        preview=row.preview,
        prompt_config_id=row.prompt_config_id,
        prompt_version=row.prompt_version or 0,
    )
