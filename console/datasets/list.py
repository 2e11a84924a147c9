"""The page of data sets: how large and how old they are, a form for a new one, and one that takes requests into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase

from analytics.datasets import services
from analytics.datasets.selectors import list_datasets
from analytics.datasets.services import Added
from analytics.presenters import datasets
from analytics.queries.request_samples import SampleOrder
from analytics.serializers.datasets import FromRequestsSerializer, FromReviewSerializer
from console.datasets.forms import NAMED, DatasetForm, TakeForm
from console.datasets.taking import FromExperiment, read_positions
from core.audit.actors import actor_name
from core.errors import ApplicationError
from core.roles import Right
from core.ui.formats import moment, number
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table, page_link, page_number
from core.wire.pagination import Page as ListPage
from gateway.experiments.errors import ExperimentNotFoundError
from gateway.experiments.selectors import get_experiment

_PER_PAGE = 25
_MAX_PAGE = 100
_RETENTIONS = {"kept": "until deleted", "project": "as requests"}
_LEFT_OUT = {
    "already_there": "are in the set already",
    "no_text": "have no stored texts",
    "too_large": "are too large",
    "unreadable": "are no chat completions that can be read",
}


@register_page
class DatasetsPage(Page):
    """The query of the request log in the address, or `request_id`, `queue_id`, or `experiment_id` with perhaps
    `positions`, opens the form that takes them."""

    route = "datasets/"
    name = "datasets"
    title = "Data sets"
    template = "datasets/list.html"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return _shown(visit)

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [Panel.of_table("datasets", "Data sets", lambda: _table(visit))]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.EDIT)
        if visit.request.POST.get("action") == "take":
            return self._take(visit)
        form = DatasetForm(visit.request.POST)
        if form.is_valid():
            try:
                row = services.create_dataset(project_id=visit.project.pk, actor=visit.actor, **form.cleaned_data)
            except ApplicationError as error:
                add_error(form, error)
            else:
                messages.success(visit.request, f"The data set {row.name} is there. Add its first items.")
                return HttpResponseRedirect(visit.link("dataset", visit.project.pk, row.pk))
        return self.render(visit, self.panels(visit), **_shown(visit, new=form))

    def _take(self, visit: Visit) -> HttpResponseBase:
        form = _take_form(visit, visit.request.POST)
        if form.is_valid():
            try:
                added = _added(visit, form)
            except ApplicationError as error:
                add_error(form, error)
            else:
                messages.success(visit.request, _said(added))
                return HttpResponseRedirect(visit.link("dataset", visit.project.pk, added.dataset.pk))
        return self.render(visit, self.panels(visit), **_shown(visit, take=form))


def add_error(form: forms.Form, error: ApplicationError) -> None:
    """Adds an error to the field that it names, or to the form."""
    named = next(iter(error.details or ()), "")
    form.add_error(named if named in form.fields else None, error.message)


def _shown(visit: Visit, new: DatasetForm | None = None, take: TakeForm | None = None) -> dict[str, Any]:
    return {
        "new": new or DatasetForm(),
        "new_is_open": new is not None,
        "take": take or _take_form(visit),
        "take_is_open": take is not None or _names_requests(visit),
        "may_edit": visit.may(Right.EDIT),
        "form_address": visit.link("datasets"),
    }


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
    """Adds what the form names. A new set is there only if something was added to it."""
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
            return services.add_from_review(**whose, queue_id=values["queue_id"], states=values["states"])
        if not isinstance(body, FromRequestsSerializer):
            raise TypeError("the form takes requests")
        if (ids := body.request_ids_given) is not None:
            return services.add_requests(**whose, request_ids=ids)
        order = SampleOrder(values["order"])
        return services.add_from_filter(**whose, filters=body.filters, order=order, limit=values["limit"])


def _said(added: Added) -> str:
    items = "1 item is" if added.items == 1 else f"{added.items:,} items are"
    others = [f"{count:,} {_LEFT_OUT[reason]}" for reason, count in added.left_out.items()]
    left_out = f" Left out: {'; '.join(others)}." if others else ""
    return f"{items} new in {added.dataset.name}, version {added.dataset.version}.{left_out}"


def _table(visit: Visit) -> Table:
    query = visit.request.GET
    place = page_number(query, maximum=_MAX_PAGE)
    listing = datasets.datasets(visit.project.pk, ListPage(_PER_PAGE, (place - 1) * _PER_PAGE))
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
        query=query,
        key=lambda row: visit.link("dataset", visit.project.pk, row["id"]),
        has_chooser=True,
        next_url=page_link(query, p=str(place + 1)) if place * _PER_PAGE < listing.count else "",
        previous_url=page_link(query, p=str(place - 1)) if place > 1 else "",
        count=listing.count,
    )
