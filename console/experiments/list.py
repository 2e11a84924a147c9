"""The list of experiments of a project, the newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from typing_extensions import override

from core.audit.actors import actor_names
from core.ui.formats import moment
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table, page_link
from gateway.experiments.candidates import candidates_of
from gateway.experiments.selectors import list_experiments
from gateway.models import Experiment

PAGE_ROWS = 50


@register_page
class ExperimentsPage(Page):
    route = "experiments/"
    name = "experiments"
    title = "Experiments"
    template = "experiments/list.html"

    @override
    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return {"table": _table(visit), "new_address": visit.link_if_there("experiment_form")}


def _table(visit: Visit) -> Table:
    query = visit.request.GET
    rows: Sequence[Experiment] = list(
        _after(list_experiments(visit.project.pk), query.get("cursor", ""))[: PAGE_ROWS + 1]
    )
    names = actor_names(row.created_by for row in rows)
    link = visit.link_if_there("experiment_form")
    return Table(
        caption="Experiments, the newest first",
        columns=[
            Column("name", "Experiment", lambda row: row.name),
            Column("state", "State", lambda row: status(row.state)),
            Column("done", "Answers", lambda row: f"{row.done_count} of {row.answer_count}", is_numeric=True),
            Column("items", "Items", lambda row: row.item_count, is_numeric=True),
            Column("candidates", "Candidates", _candidates),
            Column("by", "By", lambda row: names[row.created_by]),
            Column("created", "Made", lambda row: moment(row.created_at)),
        ],
        rows=rows[:PAGE_ROWS],
        empty=Empty(
            "Nothing was tried yet. An experiment answers past requests with two versions or models side by side.",
            link,
            "Try the first" if link else "",
        ),
        query=query,
        key=lambda row: visit.link("experiment", row.pk),
        next_url=page_link(query, cursor=str(rows[PAGE_ROWS - 1].pk)) if len(rows) > PAGE_ROWS else "",
        previous_url=page_link(query, cursor="") if query.get("cursor") else "",
    )


def _candidates(row: Experiment) -> str:
    return "; ".join(f"{candidate.label}: {candidate.title}" for candidate in candidates_of(row.candidates))


def _after(experiments: QuerySet[Experiment], cursor: str) -> QuerySet[Experiment]:
    """Returns the experiments after the one that the cursor names; all of them for one that is not there."""
    try:
        last = experiments.filter(pk=UUID(cursor)).first() if cursor else None
    except ValueError:
        last = None
    if last is None:
        return experiments
    return experiments.filter(Q(created_at__lt=last.created_at) | Q(created_at=last.created_at, pk__lt=last.pk))
