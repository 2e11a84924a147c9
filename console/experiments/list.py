"""The list of experiments of a project, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import QueryDict

from analytics.datasets.selectors import list_datasets
from console.experiments.rows import columns_of
from core.audit.actors import actor_names
from core.ui.filters import FilterField, Filters
from core.ui.formats import moment
from core.ui.pages import Page, Visit
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table, page_link
from gateway.experiments.selectors import list_experiments
from gateway.models import Experiment
from gateway.tables.experiment import ExperimentState, ExperimentVerdict

PAGE_ROWS = 50
_FILTERS = ("dataset_id", "state", "verdict")


@register_page
class ExperimentsPage(Page):
    route = "experiments/"
    name = "experiments"
    title = "Experiments"
    template = "experiments/list.html"

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
    found = _after(_chosen(visit.project.pk, query), query.get("cursor", ""))
    rows: list[Experiment] = list(found[: PAGE_ROWS + 1])
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
        rows=rows[:PAGE_ROWS],
        empty=_empty(visit),
        query=query,
        key=lambda row: visit.link("experiment", row.pk),
        next_url=page_link(query, cursor=str(rows[PAGE_ROWS - 1].pk)) if len(rows) > PAGE_ROWS else "",
        previous_url=page_link(query, cursor="") if query.get("cursor") else "",
    )


def _chosen(project_id: UUID, query: QueryDict) -> QuerySet[Experiment]:
    """Returns the experiments that the filters leave; a value that no experiment has leaves none."""
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


def _after(experiments: QuerySet[Experiment], cursor: str) -> QuerySet[Experiment]:
    """Returns the experiments after the one that the cursor names; all of them for one that is not there."""
    try:
        last = experiments.filter(pk=UUID(cursor)).first() if cursor else None
    except ValueError:
        last = None
    if last is None:
        return experiments
    return experiments.filter(Q(created_at__lt=last.created_at) | Q(created_at=last.created_at, pk__lt=last.pk))
