from __future__ import annotations

from uuid import UUID

from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import StrIndex

from analytics.datasets.errors import DatasetItemNotFoundError, DatasetNotFoundError
from analytics.datasets.items import content_hash
from analytics.models.datasets import Dataset, DatasetItem, DatasetVersion, tag_text
from core.errors import ValidationError
from core.resources.rows import get_or_raise

_TEXTS = ("messages", "variables", "parameters")


def list_datasets(project_id: UUID) -> QuerySet[Dataset]:
    return Dataset.objects.for_project(project_id).order_by("-updated_at", "-id")


def get_dataset(project_id: UUID, dataset_id: UUID) -> Dataset:
    return get_or_raise(Dataset.objects.for_project(project_id), DatasetNotFoundError, pk=dataset_id)


def list_versions(dataset: Dataset) -> QuerySet[DatasetVersion]:
    return dataset.versions.order_by("-number")


def list_items(dataset: Dataset, *, version: int | None = None, tag: str = "") -> QuerySet[DatasetItem]:
    """Returns the items of a version, by default the latest, in the order in which they were added. Raises
    ValidationError if the version does not exist."""
    found = dataset.items.filter(_in_version(dataset, version)).order_by("position")
    return _tagged(found, tag) if tag else found


def get_item(dataset: Dataset, item_id: UUID) -> DatasetItem:
    """Reads the latest version. Raises DatasetItemNotFoundError."""
    return get_or_raise(dataset.items, DatasetItemNotFoundError, item_id=item_id, removed_in=None)


def list_tags(dataset: Dataset) -> list[str]:
    texts = dataset.items.filter(removed_in=None).exclude(tag_text="").order_by().values_list("tag_text", flat=True)
    return sorted({tag for text in texts.distinct() for tag in DatasetItem(tag_text=text).tags})


def known_requests(dataset: Dataset) -> QuerySet[DatasetItem, UUID | None]:
    made = dataset.items.filter(removed_in=None, source_request_id__isnull=False).order_by()
    return made.values_list("source_request_id", flat=True)


def known_contents(dataset: Dataset) -> set[str]:
    made = dataset.items.filter(removed_in=None).order_by().values_list("input_hash", "expected")
    return {content_hash(digest, expected) for digest, expected in made.iterator()}


def _in_version(dataset: Dataset, version: int | None) -> Q:
    if version is None or version == dataset.version:
        return Q(removed_in=None)
    if not 0 <= version < dataset.version:
        raise ValidationError.of_field("version", f"The data set has the versions 0 to {dataset.version}.")
    return Q(added_in__lte=version) & (Q(removed_in=None) | Q(removed_in__gt=version))


def _tagged(items: QuerySet[DatasetItem], tag: str) -> QuerySet[DatasetItem]:
    # The position of a text in another one is by its exact characters in every database; LIKE of SQLite is not.
    return items.annotate(place=StrIndex(F("tag_text"), Value(tag_text([tag])))).filter(place__gt=0)
