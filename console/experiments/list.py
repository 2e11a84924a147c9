from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import QueryDict

from analytics.datasets.selectors import list_datasets
from console.experiments.rows import columns_of
from core.audit.actors import actor_names
from core.ui.filters import FilterField, Filters
from core.ui.formats import moment
from core.ui.pages import Page, Visit
from core.ui.tables import Column, Empty, Table, newest_first, page_link
from gateway.experiments.selectors import list_experiments
from gateway.models import Experiment
from gateway.tables.experiment import ExperimentState, ExperimentVerdict

PAGE_ROWS = 50
_FILTERS = ("dataset_id", "state", "verdict")


class ExperimentsPage(Page):
    route = "experiments/"
    name = "experiments"
    title = "Experiments"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return {
            "table": _table(visit),
            "filters": _filters(visit),
            "new_address": visit.link_if_there("experiment_form"),
        }


def _filters(visit: Visit) -> Filters:
    datasets = [(str(row.pk), row.name) for row in list_datasets(visit.project.pk)]
    return Filters(
        fields=[
            FilterField("dataset_id", "Data set", kind="choice", choices=datasets),
            FilterField("state", "State", kind="choice", choices=[(one.value, one.value) for one in ExperimentState]),
            FilterField(
                "verdict", "Verdict", kind="choice", choices=[(one.value, one.value) for one in ExperimentVerdict]
            ),
        ],
        query=visit.request.GET,
    )


def _table(visit: Visit) -> Table:
    query = visit.request.GET
    rows, links = newest_first(_chosen(visit.project.pk, query), query, PAGE_ROWS, by="created_at")
    names = actor_names(row.created_by for row in rows)
    return Table(
        caption="Experiments, the newest first",
        columns=[
            *columns_of(visit),
            Column("done", "Answers", lambda row: f"{row.done_count} of {row.answer_count}", is_numeric=True),
            Column("items", "Items", lambda row: row.item_count, is_numeric=True, gives_way=True),
            Column("by", "By", lambda row: names[row.created_by], gives_way=True),
            Column("created", "Made", lambda row: moment(row.created_at)),
        ],
        rows=rows,
        empty=_empty(visit),
        key=lambda row: visit.link("experiment", row.pk),
        **links,
    )


def _chosen(project_id: UUID, query: QueryDict) -> QuerySet[Experiment]:
    chosen: dict[str, Any] = {name: query[name] for name in _FILTERS if query.get(name)}
    try:
        if "dataset_id" in chosen:
            chosen["dataset_id"] = UUID(chosen["dataset_id"])
    except ValueError:
        return Experiment.objects.none()
    return list_experiments(project_id, **chosen)


def _empty(visit: Visit) -> Empty:
    query = visit.request.GET
    if any(query.get(name) for name in _FILTERS):
        return Empty("No experiment fits these filters.", page_link(query, **dict.fromkeys(_FILTERS, "")), "Clear")
    link = visit.link_if_there("experiment_form")
    text = "Nothing was tried yet. An experiment puts past requests, or a data set, to versions or models side by side."
    return Empty(text, link, "Try the first" if link else "")
