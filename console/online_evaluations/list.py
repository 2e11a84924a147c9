from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase

from analytics.evaluators.selectors import KnownVersion, newest_versions, title_of
from analytics.models import OnlineEvaluation
from analytics.online_evaluations.selectors import (
    Progress,
    list_online_evaluations,
    progress_of_several,
    scoring_number_of,
)
from console.online_evaluations.forms import NewForm
from console.online_evaluations.words import due_in_words, missing_in_words, spent_in_words
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.formats import money, number, share
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Numbered, Table
from gateway.evaluations.services import create_online_evaluation, require_judge

_PER_PAGE = 25
_REFRESH_SECONDS = 30
_NO_EVALUATOR = (
    "Nothing is scored while it is served. The first step: make an evaluator that says what a good answer is."
)
_NO_EVALUATION = "Nothing is scored while it is served. The first step: choose an evaluator and a share of the answers."


class OnlineEvaluationsPage(EditPage[None, NewForm]):
    """`evaluator_id` in the address opens the form with this evaluator."""

    route = "online-evaluations/"
    name = "online_evaluations"
    title = "Online evaluations"
    right = Right.EDIT

    def form(self, visit: Visit, record: None, data: Any = None) -> NewForm:
        return NewForm(_usable(visit.project.pk), data, visit.request.GET.get("evaluator_id", ""))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [
            Panel.of_table("evaluations", "Online evaluations", lambda: _table(visit), refresh_seconds=_REFRESH_SECONDS)
        ]

    def save(self, visit: Visit, record: None, form: NewForm) -> HttpResponseBase:
        new = form.new_evaluation()
        require_judge(project_id=visit.project.pk, new=new)
        row = create_online_evaluation(project_id=visit.project.pk, new=new, actor=visit.actor)
        href = visit.link("online_evaluation", visit.project.pk, row.pk)
        return visit.done("Answers to requests that arrive from now on are scored.", href)

    def shown(self, visit: Visit, record: None, form: NewForm) -> Mapping[str, Any]:
        is_open = form.is_bound or "evaluator_id" in visit.request.GET
        return {"form_is_open": is_open, "form_address": visit.link("online_evaluations")}


def _usable(project_id: UUID) -> list[KnownVersion]:
    return [one for one in newest_versions(project_id) if one.definition.scores_alone]


_Shown = tuple[OnlineEvaluation, Progress]


def _table(visit: Visit) -> Table:
    found, numbered = list_online_evaluations(visit.project.pk), Numbered(visit.request.GET, _PER_PAGE)
    shown = list(found[numbered.rows])
    progress = progress_of_several(shown)
    rows: list[_Shown] = [(row, progress[row.pk]) for row in shown]
    return Table(
        caption="Online evaluations, the newest first",
        columns=[
            Column("evaluator", "Evaluator", lambda one: title_of(one[0].evaluator.name, scoring_number_of(one[0]))),
            Column("state", "State", lambda one: status(one[0].state)),
            Column("rate", "Share", lambda one: _sample(one[0])),
            Column("due", "Due", lambda one: due_in_words(one[1])),
            Column("done", "Done", lambda one: number(one[1].tasks["done"]), is_numeric=True),
            Column("missing", "Missing", lambda one: missing_in_words(one[1].tasks)),
            Column("spent", "Spent this month", lambda one: spent_in_words(*one), gives_way=True),
            Column("cost", "Last 24 hours", lambda one: money(one[1].last_day_usd), is_numeric=True),
        ],
        rows=rows,
        empty=_empty(visit),
        key=lambda one: visit.link("online_evaluation", visit.project.pk, one[0].pk),
        **numbered.links(found.count()),
    )


def _sample(row: OnlineEvaluation) -> str:
    return f"{share(row.rate)}, both arms alike" if row.matched else share(row.rate)


def _empty(visit: Visit) -> Empty:
    if not visit.may(Right.EDIT):
        return Empty(_NO_EVALUATION)
    if not _usable(visit.project.pk):
        return Empty(_NO_EVALUATOR, visit.link_if_there("evaluator_form"), "Make an evaluator")
    return Empty(_NO_EVALUATION, "#new-evaluation", "Make the first")
