"""The page of one data set: its items by version and tag, one of them, and the forms that change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase

from analytics.datasets import services
from analytics.datasets.errors import DatasetItemNotFoundError, DatasetNotFoundError
from analytics.datasets.selectors import get_dataset, get_item, list_tags
from analytics.deletion.services import delete_dataset_item
from analytics.models.datasets import Dataset, DatasetItem
from analytics.presenters import datasets
from console.datasets.forms import DatasetForm, ItemForm, expected_text
from console.datasets.list import add_error
from console.datasets.messages import shown_messages
from console.experiments.rows import used_in
from core.audit.actors import actor_name
from core.errors import ApplicationError, ValidationError
from core.roles import Right
from core.ui.formats import NONE, moment, number
from core.ui.marks import id_link
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table, page_link, page_number
from core.wire.pagination import Page as ListPage

_PER_PAGE = 25
_MAX_PAGE = 400
_VERSIONS = 10
_MAX_EXPECTED = 200


@register_page
class DatasetPage(Page):
    """`version` and `tag` in the address choose among the items, and `item` names one of the latest version."""

    route = "datasets/<uuid:project_id>/<uuid:dataset_id>/"
    name = "dataset"
    title = "Data set"
    template = "datasets/dataset.html"
    parent = "datasets"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return _shown(visit, _dataset(visit, route["dataset_id"]))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        dataset = _dataset(visit, route["dataset_id"])
        return [
            Panel.of_table("items", "Items", lambda: _items(visit, dataset)),
            Panel.of_table("experiments", "Experiments", lambda: used_in(visit, dataset_id=dataset.pk)),
            Panel.of_table("versions", "Versions", lambda: _versions(visit, dataset)),
        ]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.EDIT)
        dataset = _dataset(visit, route["dataset_id"])
        form: DatasetForm | ItemForm | None = None
        problem = ""
        try:
            form, done = _ACTIONS.get(visit.request.POST.get("action", ""), _change)(visit, dataset)
            if done is not None:
                return done
        except ApplicationError as error:
            problem = error.message
        named = {"form": form} if isinstance(form, DatasetForm) else {"item_form": form} if form is not None else {}
        return self.render(visit, self.panels(visit, **route), **_shown(visit, dataset, problem=problem, **named))


_Done = tuple[DatasetForm | ItemForm | None, HttpResponseBase | None]
"""A form that is not valid, or where the page leads to."""


def _change(visit: Visit, dataset: Dataset) -> _Done:
    form = DatasetForm(visit.request.POST)
    if not form.is_valid():
        return form, None
    try:
        services.change_dataset(project_id=visit.project.pk, dataset_id=dataset.pk, values=form.cleaned_data)
    except ApplicationError as error:
        add_error(form, error)
        return form, None
    return None, _to(visit, dataset, "The data set is changed.")


def _delete(visit: Visit, dataset: Dataset) -> _Done:
    services.delete_dataset(project_id=visit.project.pk, dataset_id=dataset.pk, actor=visit.actor)
    messages.success(visit.request, f"The data set {dataset.name} is deleted.")
    return None, HttpResponseRedirect(visit.link("datasets"))


def _import(visit: Visit, dataset: Dataset) -> _Done:
    file = visit.request.FILES.get("file")
    if not isinstance(file, UploadedFile):
        raise ValidationError.of_field("file", "Choose a file of JSON lines.")
    added = services.add_file(
        project_id=visit.project.pk, dataset_id=dataset.pk, file=cast(Any, file.file), actor=visit.actor
    )
    return None, _to(visit, dataset, f"{added.items:,} items are new in version {added.dataset.version}.")


def _change_item(visit: Visit, dataset: Dataset) -> _Done:
    form = ItemForm(visit.request.POST)
    if not form.is_valid():
        return form, None
    item_id = _item_id(visit)
    services.change_item(
        project_id=visit.project.pk,
        dataset_id=dataset.pk,
        item_id=item_id,
        values=form.cleaned_data,
        actor=visit.actor,
    )
    return None, _to(visit, dataset, "The item is changed.", item=str(item_id))


def _remove_item(visit: Visit, dataset: Dataset) -> _Done:
    services.remove_item(project_id=visit.project.pk, dataset_id=dataset.pk, item_id=_item_id(visit), actor=visit.actor)
    return None, _to(visit, dataset, "The item is removed; earlier versions keep it.")


def _erase_item(visit: Visit, dataset: Dataset) -> _Done:
    delete_dataset_item(dataset, _item_id(visit), actor=visit.actor)
    return None, _to(visit, dataset, "The item is gone from every version.")


_ACTIONS = {
    "delete": _delete,
    "import": _import,
    "item": _change_item,
    "remove": _remove_item,
    "erase": _erase_item,
}


def _to(visit: Visit, dataset: Dataset, message: str, **query: str) -> HttpResponseBase:
    messages.success(visit.request, message)
    return HttpResponseRedirect(visit.link("dataset", visit.project.pk, dataset.pk, **query))


def _shown(
    visit: Visit,
    dataset: Dataset,
    *,
    problem: str = "",
    form: DatasetForm | None = None,
    item_form: ItemForm | None = None,
) -> dict[str, Any]:
    own = {"name": dataset.name, "description": dataset.description, "retention": dataset.retention}
    query = visit.request.GET
    return {
        "dataset": dataset,
        "problem": problem,
        "form": form or DatasetForm(initial=own),
        "form_is_open": form is not None,
        "may_edit": visit.may(Right.EDIT),
        "tags": list_tags(dataset),
        "tag": query.get("tag", ""),
        "version": _version(visit, dataset),
        "own_address": visit.link("dataset", visit.project.pk, dataset.pk),
        "export": _export(visit, dataset),
        "experiment_address": visit.link_if_there("experiment_form", dataset=dataset.pk),
        "requests": visit.link_if_there("analytics_requests_changelist"),
        "datasets_address": visit.link("datasets"),
        **_item(visit, dataset, item_form),
    }


def _item(visit: Visit, dataset: Dataset, form: ItemForm | None) -> dict[str, Any]:
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
        "item_form": form or ItemForm(initial=own),
        "request_address": _request_address(visit, item),
    }


def _items(visit: Visit, dataset: Dataset) -> Table:
    query, version = visit.request.GET, _version(visit, dataset)
    place = page_number(query, maximum=_MAX_PAGE)
    page = ListPage(_PER_PAGE, (place - 1) * _PER_PAGE)
    listing = datasets.items(
        dataset, page, version=version, tag=query.get("tag", "")[:50], with_texts=visit.sees_content
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
        query=query,
        key=(lambda row: f"{own}?item={row['id']}") if visit.sees_content else None,
        is_current=lambda row: str(row["id"]) == query.get("item"),
        has_chooser=True,
        next_url=page_link(query, p=str(place + 1)) if place * _PER_PAGE < listing.count else "",
        previous_url=page_link(query, p=str(place - 1)) if place > 1 else "",
        count=listing.count,
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
    """Returns the version in the address; the latest for one that there is not."""
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


def _dataset(visit: Visit, dataset_id: UUID) -> Dataset:
    try:
        return get_dataset(visit.project.pk, dataset_id)
    except DatasetNotFoundError as error:
        raise Http404(error.message) from error
