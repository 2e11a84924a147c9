from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http.response import HttpResponseBase

from analytics.datasets import services, sources
from analytics.datasets.selectors import list_datasets
from analytics.datasets.services import Added
from analytics.presenters import datasets
from analytics.queries.request_samples import SampleOrder
from analytics.serializers.datasets import FromRequestsSerializer, FromReviewSerializer
from console.datasets.forms import NAMED, DatasetForm, TakeForm
from console.datasets.taking import FromExperiment, read_positions
from core.audit.actors import actor_name
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.formats import moment, number
from core.ui.forms import saved
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Numbered, Table
from gateway.experiments.errors import ExperimentNotFoundError
from gateway.experiments.selectors import get_experiment

_PER_PAGE = 25
_RETENTIONS = {"kept": "until deleted", "project": "as requests"}
_LEFT_OUT = {
    "already_there": "are in the set already",
    "no_text": "have no stored texts",
    "too_large": "are too large",
    "unreadable": "are no chat completions that can be read",
}


class DatasetsPage(EditPage[None, DatasetForm]):
    """The form that takes requests opens if the address has a query of the request log, `request_id`, `queue_id`, or
    `experiment_id` with optional `positions`."""

    route = "datasets/"
    name = "datasets"
    title = "Data sets"
    right = Right.EDIT

    def form(self, visit: Visit, record: None, data: Any = None) -> DatasetForm:
        return DatasetForm(data)

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [Panel.of_table("datasets", "Data sets", lambda: _table(visit))]

    def save(self, visit: Visit, record: None, form: DatasetForm) -> HttpResponseBase:
        row = services.create_dataset(project_id=visit.project.pk, actor=visit.actor, **form.cleaned_data)
        said = f"The data set {row.name} is there. Add its first items."
        return visit.done(said, visit.link("dataset", visit.project.pk, row.pk))

    def shown(self, visit: Visit, record: None, form: DatasetForm) -> Mapping[str, Any]:
        return {
            "take": _take_form(visit),
            "take_is_open": _names_requests(visit),
            "form_address": visit.link("datasets"),
        }

    def do_take(self, visit: Visit, record: None) -> HttpResponseBase:
        form = _take_form(visit, visit.request.POST)
        added = saved(form, lambda: _added(visit, form))
        if added is None:
            return self.again(visit, record, DatasetForm(), take=form, take_is_open=True)
        return visit.done(_said(added), visit.link("dataset", visit.project.pk, added.dataset.pk))


def _names_requests(visit: Visit) -> bool:
    form = _take_form(visit)
    return any(form.initial.get(name) for name in ("filter", *NAMED)) or "take" in visit.request.GET


def _take_form(visit: Visit, data: Mapping[str, Any] | None = None) -> TakeForm:
    rows = list(list_datasets(visit.project.pk)[: services.MAX_DATASETS])
    return TakeForm(rows, visit.period, data, visit.request.GET, _experiment(visit, data))


def _experiment(visit: Visit, data: Mapping[str, Any] | None) -> FromExperiment | None:
    given = visit.request.GET if data is None else data
    try:
        found = get_experiment(visit.project.pk, UUID(given.get("experiment_id", "")))
    except (ValueError, ExperimentNotFoundError):
        return None
    return FromExperiment(found, read_positions(given.get("positions", "")))


def _added(visit: Visit, form: TakeForm) -> Added:
    """Creates a new set only if something is added to it."""
    body, given = form.body, form.cleaned_data
    if body is None:
        raise ValueError("the form is not valid")
    whose: dict[str, Any] = {"project_id": visit.project.pk, "actor": visit.actor}
    with transaction.atomic():
        if given["dataset"]:
            dataset_id = UUID(given["dataset"])
        else:
            dataset_id = services.create_dataset(**whose, name=given["name"]).pk
        whose |= {"dataset_id": dataset_id, "options": body.options}
        if form.experiment is not None:
            return form.experiment.add(
                dataset_id=dataset_id, expected=given["expected"], options=body.options, actor=visit.actor
            )
        values = body.validated_data
        if isinstance(body, FromReviewSerializer):
            return services.add_found(sources.of_review, values["queue_id"], values["states"], **whose)
        if not isinstance(body, FromRequestsSerializer):
            raise TypeError("the form takes requests")
        if (ids := body.request_ids_given) is not None:
            return services.add_found(sources.of_requests, ids, **whose)
        order = SampleOrder(values["order"])
        return services.add_found(sources.of_filter, body.filters, order, values["limit"], **whose)


def _said(added: Added) -> str:
    items = "1 item is" if added.items == 1 else f"{added.items:,} items are"
    others = [f"{count:,} {_LEFT_OUT[reason]}" for reason, count in added.left_out.items()]
    left_out = f" Left out: {'; '.join(others)}." if others else ""
    return f"{items} new in {added.dataset.name}, version {added.dataset.version}.{left_out}"


def _table(visit: Visit) -> Table:
    numbered = Numbered(visit.request.GET, _PER_PAGE)
    listing = datasets.datasets(visit.project.pk, numbered.page)
    return Table(
        caption="Data sets, the last changed first",
        columns=[
            Column("name", "Data set", cell=lambda row: row["name"]),
            Column("items", "Items", cell=lambda row: number(row["item_count"]), is_numeric=True),
            Column("version", "Version", cell=lambda row: row["version"], is_numeric=True),
            Column("retention", "Kept", cell=lambda row: _RETENTIONS[row["retention"]]),
            Column("description", "Description", cell=lambda row: row["description"][:200], gives_way=True),
            Column("created_by", "Made by", cell=lambda row: actor_name(row["created_by"]), is_default=False),
            Column("updated_at", "Changed", cell=lambda row: moment(row["updated_at"])),
        ],
        rows=listing.results,
        empty=Empty(
            "No data set yet. Choose requests that matter, such as failures or reviewed ones, and take them into one.",
            visit.link_if_there("analytics_requests_changelist"),
            "Choose requests",
        ),
        key=lambda row: visit.link("dataset", visit.project.pk, row["id"]),
        has_chooser=True,
        **numbered.links(listing.count),
    )
