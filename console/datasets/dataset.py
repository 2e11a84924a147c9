from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from django.core.files.uploadedfile import UploadedFile
from django.http.response import HttpResponseBase

from analytics.datasets import services
from analytics.datasets.errors import DatasetItemNotFoundError
from analytics.datasets.selectors import get_dataset, get_item, list_tags
from analytics.deletion.services import delete_dataset_item
from analytics.models.datasets import Dataset, DatasetItem
from analytics.presenters import datasets
from console.datasets.forms import DatasetForm, ItemForm, expected_text
from console.datasets.messages import shown_messages
from console.experiments.rows import used_in
from core.audit.actors import actor_name
from core.errors import ApplicationError, ValidationError
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.formats import NONE, moment, number
from core.ui.marks import id_link
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Numbered, Table
from core.wire.pagination import Page as ListPage

_PER_PAGE = 25
_MAX_PAGE = 400
_VERSIONS = 10
_MAX_EXPECTED = 200


class DatasetPage(EditPage[Dataset, DatasetForm]):
    """`version` and `tag` in the address choose among the items; `item` names one of the latest version."""

    route = "datasets/<uuid:project_id>/<uuid:dataset_id>/"
    name = "dataset"
    title = "Data set"
    parent = "datasets"
    right = Right.EDIT
    saves = ("", "change")

    def record(self, visit: Visit, **route: Any) -> Dataset:
        return get_dataset(visit.project.pk, route["dataset_id"])

    def form(self, visit: Visit, record: Dataset, data: Any = None) -> DatasetForm:
        own = {"name": record.name, "description": record.description, "retention": record.retention}
        return DatasetForm(data, initial=own)

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        dataset = self.record(visit, **route)
        return [
            Panel.of_table("items", "Items", lambda: _items(visit, dataset)),
            Panel.of_table("experiments", "Experiments", lambda: used_in(visit, dataset_id=dataset.pk)),
            Panel.of_table("versions", "Versions", lambda: _versions(visit, dataset)),
        ]

    def save(self, visit: Visit, record: Dataset, form: DatasetForm) -> HttpResponseBase:
        services.change_dataset(project_id=visit.project.pk, dataset_id=record.pk, values=form.cleaned_data)
        return _to(visit, record, "The data set is changed.")

    def fail(self, visit: Visit, record: Dataset, error: ApplicationError) -> HttpResponseBase:
        return self.again(visit, record, self.form(visit, record), problem=error.message)

    def shown(self, visit: Visit, record: Dataset, form: DatasetForm) -> Mapping[str, Any]:
        return {
            "tags": list_tags(record),
            "tag": visit.request.GET.get("tag", ""),
            "version": _version(visit, record),
            "own_address": self.address(visit, record),
            "export": _export(visit, record),
            "experiment_address": visit.link_if_there("experiment_form", dataset=record.pk),
            **_item(visit, record),
        }

    def address(self, visit: Visit, record: Dataset) -> str:
        return visit.link(self.name, visit.project.pk, record.pk)

    def do_delete(self, visit: Visit, record: Dataset) -> HttpResponseBase:
        services.delete_dataset(project_id=visit.project.pk, dataset_id=record.pk, actor=visit.actor)
        return visit.done(f"The data set {record.name} is deleted.", visit.link("datasets"))

    def do_import(self, visit: Visit, record: Dataset) -> HttpResponseBase:
        file = visit.request.FILES.get("file")
        if not isinstance(file, UploadedFile):
            raise ValidationError.of_field("file", "Choose a file of JSON lines.")
        added = services.add_file(
            project_id=visit.project.pk, dataset_id=record.pk, file=cast(Any, file.file), actor=visit.actor
        )
        return _to(visit, record, f"{added.items:,} items are new in version {added.dataset.version}.")

    def do_item(self, visit: Visit, record: Dataset) -> HttpResponseBase:
        form = ItemForm(visit.request.POST)
        if not form.is_valid():
            return self.again(visit, record, self.form(visit, record), item_form=form)
        services.change_item(**_named_item(visit, record), values=form.cleaned_data)
        return _to(visit, record, "The item is changed.", item=str(_item_id(visit)))

    def do_remove(self, visit: Visit, record: Dataset) -> HttpResponseBase:
        services.remove_item(**_named_item(visit, record))
        return _to(visit, record, "The item is removed; earlier versions keep it.")

    def do_erase(self, visit: Visit, record: Dataset) -> HttpResponseBase:
        delete_dataset_item(record, _item_id(visit), actor=visit.actor)
        return _to(visit, record, "The item is gone from every version.")


def _named_item(visit: Visit, dataset: Dataset) -> dict[str, Any]:
    named = {"project_id": visit.project.pk, "dataset_id": dataset.pk, "item_id": _item_id(visit)}
    return {**named, "actor": visit.actor}


def _to(visit: Visit, dataset: Dataset, message: str, **query: str) -> HttpResponseBase:
    return visit.done(message, visit.link("dataset", visit.project.pk, dataset.pk, **query))


def _item(visit: Visit, dataset: Dataset) -> dict[str, Any]:
    named = visit.request.POST.get("item") or visit.request.GET.get("item", "")
    try:
        item = get_item(dataset, UUID(named)) if named else None
    except (ValueError, DatasetItemNotFoundError):
        item = None
    if item is None or not visit.sees_content:
        return {}
    own = {"expected": expected_text(item.expected), "tags": ", ".join(item.tags)}
    return {
        "item": item,
        "messages_of_item": shown_messages(item),
        "item_form": ItemForm(initial=own),
        "request_address": _request_address(visit, item),
    }


def _items(visit: Visit, dataset: Dataset) -> Table:
    query, version = visit.request.GET, _version(visit, dataset)
    numbered = Numbered(query, _PER_PAGE, _MAX_PAGE)
    listing = datasets.items(
        dataset, numbered.page, version=version, tag=query.get("tag", "")[:50], with_texts=visit.sees_content
    )
    own = visit.link("dataset", visit.project.pk, dataset.pk)
    return Table(
        caption=f"Items of version {version}",
        columns=[
            Column("position", "Item", cell=lambda row: row["position"], is_numeric=True),
            Column("preview", "Input", cell=lambda row: row["preview"] or NONE),
            Column("expected", "Expected", cell=lambda row: expected_text(row["expected"])[:_MAX_EXPECTED] or NONE),
            Column("tags", "Tags", cell=lambda row: ", ".join(row["tags"]) or NONE),
            Column("request", "Request", cell=lambda row: _request(visit, row)),
            Column("added_in", "Since version", cell=lambda row: row["added_in"], is_default=False),
        ],
        rows=listing.results,
        empty=Empty(
            "No item has this tag in this version."
            if dataset.version
            else "No items yet: take requests of the log, or add a file of JSON lines.",
            visit.link_if_there("datasets", take="1"),
            "Take requests",
        ),
        key=(lambda row: f"{own}?item={row['id']}") if visit.sees_content else None,
        is_current=lambda row: str(row["id"]) == query.get("item"),
        has_chooser=True,
        **numbered.links(listing.count),
    )


def _versions(visit: Visit, dataset: Dataset) -> Table:
    listing = datasets.versions(dataset, ListPage(_VERSIONS, 0))
    return Table(
        caption="The latest versions",
        columns=[
            Column("version", "Version", cell=lambda row: row["version"], is_numeric=True),
            Column("change", "Change", cell=lambda row: f"{number(row['items'])} {row['action']}"),
            Column("by", "By", cell=lambda row: actor_name(row["created_by"])),
            Column("at", "At", cell=lambda row: moment(row["created_at"])),
        ],
        rows=listing.results,
        empty=Empty("Each change of the items makes a version."),
        key=lambda row: visit.link("dataset", visit.project.pk, dataset.pk, version=row["version"]),
    )


def _version(visit: Visit, dataset: Dataset) -> int:
    text = visit.request.GET.get("version", "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= 9
    return int(text) if is_number and int(text) <= dataset.version else dataset.version


def _export(visit: Visit, dataset: Dataset) -> str:
    version = _version(visit, dataset)
    return visit.link_if_there("dataset_export", visit.project.pk, dataset.pk, version=str(version))


def _request(visit: Visit, row: Mapping[str, Any]) -> Any:
    request_id = row["source_request_id"]
    if request_id is None:
        return NONE
    return id_link(visit.link_if_there("analytics_requests_detail", visit.project.pk, request_id), request_id)


def _request_address(visit: Visit, item: DatasetItem) -> str:
    if item.source_request_id is None:
        return ""
    return visit.link_if_there("analytics_requests_detail", visit.project.pk, item.source_request_id)


def _item_id(visit: Visit) -> UUID:
    try:
        return UUID(visit.request.POST.get("item", ""))
    except ValueError:
        raise DatasetItemNotFoundError from None
