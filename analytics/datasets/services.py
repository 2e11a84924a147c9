from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from analytics.datasets import sources
from analytics.datasets.errors import DatasetExistsError, DatasetFullError, InvalidItemError, TooManyDatasetsError
from analytics.datasets.items import NewItem, content_hash, input_hash, preview_of, stored_tags
from analytics.datasets.lines import read_lines
from analytics.datasets.selectors import get_dataset, get_item, known_contents, known_requests
from analytics.datasets.sources import Found, LeftOut, Options
from analytics.identifiers import arrival_of, id_hash
from analytics.models.datasets import Dataset, DatasetAction, DatasetItem, DatasetVersion, tag_text
from core.resources.rows import lock_project, require_room

logger = logging.getLogger("analytics.datasets")

MAX_DATASETS = 100
MAX_ITEMS = 10_000
_ROWS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Added:
    items: int
    dataset: Dataset
    left_out: Mapping[str, int]


def create_dataset(*, project_id: UUID, name: str, actor: str, **values: Any) -> Dataset:
    """Makes an empty set at version 0. Raises TooManyDatasetsError, DatasetExistsError."""
    with transaction.atomic():
        rows = Dataset.objects.for_project(project_id)
        require_room(project_id, rows, MAX_DATASETS, TooManyDatasetsError(MAX_DATASETS))
        _require_free(project_id, name)
        row = Dataset.objects.create(project_id=project_id, name=name, created_by=actor, **values)
    logger.info("dataset.created dataset_id=%s project_id=%s actor=%s", row.pk, project_id, actor)
    return row


def change_dataset(*, project_id: UUID, dataset_id: UUID, values: Mapping[str, Any]) -> Dataset:
    """Changes only given values and keeps the version. Raises DatasetNotFoundError, DatasetExistsError."""
    with transaction.atomic():
        lock_project(project_id)
        row = _locked(project_id, dataset_id)
        if "name" in values and values["name"] != row.name:
            _require_free(project_id, values["name"])
        for name, value in values.items():
            setattr(row, name, value)
        row.save(update_fields=list(values))
    return row


def delete_dataset(*, project_id: UUID, dataset_id: UUID, actor: str) -> None:
    """Deletes all versions too. Raises DatasetNotFoundError."""
    get_dataset(project_id, dataset_id).delete()
    logger.info("dataset.deleted dataset_id=%s project_id=%s actor=%s", dataset_id, project_id, actor)


def add_items(
    *, project_id: UUID, dataset_id: UUID, items: Iterable[NewItem], actor: str, only_new: bool = False
) -> Added:
    """Adds all items as one version, or none if reading them raises.

    `only_new` leaves out items whose input and expected answer are in the latest version or in an item before. Raises
    DatasetNotFoundError, DatasetFullError.
    """
    left_out: Counter[str] = Counter()
    with transaction.atomic():
        row = _locked(project_id, dataset_id)
        count = 0
        with _new_version(row, DatasetAction.ADDED, actor) as version:
            there, arriving = row.item_count, iter(items)
            if only_new:
                arriving = _new_ones(arriving, known_contents(row), left_out)
            while some := list(islice(arriving, _ROWS_AT_ONCE)):
                count += len(some)
                if there + count > MAX_ITEMS:
                    raise DatasetFullError(MAX_ITEMS, there, count)
                first = row.last_position + 1
                DatasetItem.objects.bulk_create(
                    [_row(row, item, first + place, version.number) for place, item in enumerate(some)]
                )
                row.last_position += len(some)
            version.items, row.item_count = count, there + count
    return Added(count, row, left_out)


def add_file(
    *,
    project_id: UUID,
    dataset_id: UUID,
    file: IO[bytes],
    actor: str,
    only_new: bool = False,
    progress: Callable[[int], object] = lambda lines: None,
) -> Added:
    """Adds the items of a JSON Lines file, all or none. Raises InvalidItemError, which names line and field, and as
    `add_items`.

    Reads the file twice: it is checked as a whole before the database is asked.
    """
    get_dataset(project_id, dataset_id)
    start = file.tell()
    if not sum(1 for _ in read_lines(file, maximum=MAX_ITEMS)):
        raise InvalidItemError({"": "The file has no items."})
    file.seek(start)
    items = read_lines(file, maximum=MAX_ITEMS, progress=progress)
    return add_items(project_id=project_id, dataset_id=dataset_id, items=items, actor=actor, only_new=only_new)


def add_found(
    source: Callable[..., Found], *what: Any, project_id: UUID, dataset_id: UUID, options: Options, actor: str
) -> Added:
    """Adds the items that a function of `sources` makes of requests, without those that the set has. Raises what it
    raises, and as `add_items`."""
    found = source(project_id, *what, known=_known(project_id, dataset_id), options=options)
    with transaction.atomic():
        _locked(project_id, dataset_id)
        # Another call may have added some of them while the store was asked.
        known = set(_known(project_id, dataset_id))
        fresh = [item for item in found.items if item.source_request_id not in known]
        added = add_items(project_id=project_id, dataset_id=dataset_id, items=fresh, actor=actor)
    found.left_out[LeftOut.ALREADY_THERE] += len(found.items) - len(fresh)
    return _with_left_out(added, found)


def copy_items(*, project_id: UUID, dataset_id: UUID, item_ids: Sequence[UUID], options: Options, actor: str) -> Added:
    """Copies items of the project's sets, except inputs that the set has. Raises as `add_items`."""
    with transaction.atomic():
        row = _locked(project_id, dataset_id)
        found = sources.of_items(project_id, item_ids, options=options)
        known = set(row.items.filter(removed_in=None).order_by().values_list("input_hash", flat=True))
        fresh = [item for item in found.items if input_hash(item) not in known]
        added = add_items(project_id=project_id, dataset_id=dataset_id, items=fresh, actor=actor)
    found.left_out[LeftOut.ALREADY_THERE] += len(found.items) - len(fresh)
    return _with_left_out(added, found)


def change_item(
    *, project_id: UUID, dataset_id: UUID, item_id: UUID, values: Mapping[str, Any], actor: str
) -> DatasetItem:
    """Changes only the given expected answer and tags; makes a version unless nothing differs. Raises
    DatasetNotFoundError, DatasetItemNotFoundError."""
    with transaction.atomic():
        row = _locked(project_id, dataset_id)
        item = get_item(row, item_id)
        expected = values.get("expected", item.expected)
        tags = tag_text(values.get("tags", item.tags))
        if (expected, tags) == (item.expected, item.tag_text):
            return item
        with _new_version(row, DatasetAction.CHANGED, actor) as version:
            DatasetItem.objects.filter(pk=item.pk).update(removed_in=version.number)
            item.pk, item.added_in, item.expected, item.tag_text = None, version.number, expected, tags
            item.save(force_insert=True)
            version.items = 1
    return item


def remove_item(*, project_id: UUID, dataset_id: UUID, item_id: UUID, actor: str) -> Dataset:
    """Removes an item from later versions; earlier ones keep it. Raises DatasetNotFoundError,
    DatasetItemNotFoundError.
    """
    with transaction.atomic():
        row = _locked(project_id, dataset_id)
        item = get_item(row, item_id)
        with _new_version(row, DatasetAction.REMOVED, actor) as version:
            DatasetItem.objects.filter(pk=item.pk).update(removed_in=version.number)
            version.items, row.item_count = 1, row.item_count - 1
    return row


@contextmanager
def _new_version(row: Dataset, action: DatasetAction, actor: str) -> Iterator[DatasetVersion]:
    version = DatasetVersion(dataset=row, number=row.version + 1, action=action, items=0, created_by=actor)
    yield version
    if not version.items:
        return
    version.save(force_insert=True)
    row.version, row.updated_at = version.number, timezone.now()
    row.save(update_fields=["version", "item_count", "last_position", "updated_at"])
    logger.info(
        "dataset.version dataset_id=%s version=%d action=%s items=%d actor=%s",
        row.pk, version.number, action.value, version.items, actor,
    )  # fmt: skip


def _with_left_out(added: Added, found: Found) -> Added:
    left_out = {str(reason): count for reason, count in found.left_out.items() if count}
    return Added(added.items, added.dataset, left_out)


def _new_ones(items: Iterable[NewItem], known: set[str], left_out: Counter[str]) -> Iterator[NewItem]:
    for item in items:
        content = content_hash(input_hash(item), item.expected)
        if content in known:
            left_out[LeftOut.ALREADY_THERE] += 1
            continue
        known.add(content)
        yield item


def _known(project_id: UUID, dataset_id: UUID) -> list[UUID]:
    return [one for one in known_requests(get_dataset(project_id, dataset_id)) if one is not None]


def _locked(project_id: UUID, dataset_id: UUID) -> Dataset:
    return Dataset.objects.select_for_update().get(pk=get_dataset(project_id, dataset_id).pk)


def _require_free(project_id: UUID, name: str) -> None:
    if Dataset.objects.for_project(project_id).filter(name=name).exists():
        raise DatasetExistsError


def _row(dataset: Dataset, item: NewItem, position: int, version: int) -> DatasetItem:
    made_at, now = arrival_of(item.source_request_id) if item.source_request_id else None, timezone.now()
    return DatasetItem(
        dataset=dataset,
        position=position,
        added_in=version,
        messages=item.messages,
        variables=item.variables,
        parameters=item.parameters,
        expected=item.expected,
        tag_text=stored_tags(item),
        preview=preview_of(item),
        input_hash=input_hash(item),
        prompt_config_id=item.prompt_config_id,
        prompt_version=item.prompt_version,
        source_request_id=item.source_request_id,
        request_hash=id_hash(str(item.source_request_id)) if item.source_request_id else "",
        session_hash=item.session_hash,
        # An id that somebody made up may hold a time that has not come.
        retained_from=min(item.retained_from or made_at or now, now),
    )
