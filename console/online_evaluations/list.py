"""The page of online evaluations: how far each is, what is missing, what it costs, and the form for a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase

from analytics.evaluators.selectors import KnownVersion, newest_versions, title_of
from analytics.models import OnlineEvaluation
from analytics.online_evaluations.selectors import (
    Progress,
    list_online_evaluations,
    progress_of_several,
    scoring_number_of,
)
from analytics.online_evaluations.services import create_online_evaluation, require_judge
from console.online_evaluations.forms import NewForm
from console.online_evaluations.words import due_in_words, missing_in_words, spent_in_words
from core.errors import ApplicationError
from core.roles import Right
from core.ui.formats import money, number, share
from core.ui.forms import refuse
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table, page_link, page_number

_PER_PAGE = 25
_MAX_PAGE = 100
_REFRESH_SECONDS = 30
_NO_EVALUATOR = (
    "Nothing is scored while it is served. The first step: make an evaluator that says what a good answer is."
)
_NO_EVALUATION = "Nothing is scored while it is served. The first step: choose an evaluator and a share of the answers."


@register_page
class OnlineEvaluationsPage(Page):
    """`evaluator_id` in the address opens the form with this evaluator."""

    route = "online-evaluations/"
    name = "online_evaluations"
    title = "Online evaluations"
    template = "online_evaluations/list.html"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return _shown(visit, _form(visit), is_open="evaluator_id" in visit.request.GET)

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [
            Panel.of_table("evaluations", "Online evaluations", lambda: _table(visit), refresh_seconds=_REFRESH_SECONDS)
        ]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.EDIT)
        form = _form(visit, visit.request.POST.dict())
        if form.is_valid():
            try:
                new = form.new_evaluation()
                require_judge(project_id=visit.project.pk, new=new)
                row = create_online_evaluation(project_id=visit.project.pk, new=new, actor=visit.actor)
            except ApplicationError as error:
                refuse(form, error)
            else:
                messages.success(visit.request, "Answers to requests that arrive from now on are scored.")
                return HttpResponseRedirect(visit.link("online_evaluation", visit.project.pk, row.pk))
        return self.render(visit, self.panels(visit), **_shown(visit, form, is_open=True))


def _shown(visit: Visit, form: NewForm, *, is_open: bool) -> dict[str, Any]:
    return {
        "form": form,
        "form_is_open": is_open,
        "has_evaluators": form.has_evaluators,
        "may_edit": visit.may(Right.EDIT),
        "form_address": visit.link("online_evaluations"),
    }


def _form(visit: Visit, data: Mapping[str, Any] | None = None) -> NewForm:
    choices = [(str(one.evaluator_id), one.name) for one in _usable(visit.project.pk)]
    return NewForm(choices, data, visit.request.GET.get("evaluator_id", ""))


def _usable(project_id: UUID) -> list[KnownVersion]:
    """Returns the evaluators that can score an answer by itself."""
    return [one for one in newest_versions(project_id) if one.definition.scores_alone]


_Shown = tuple[OnlineEvaluation, Progress]


def _table(visit: Visit) -> Table:
    query, place = visit.request.GET, page_number(visit.request.GET, maximum=_MAX_PAGE)
    found, first = list_online_evaluations(visit.project.pk), (place - 1) * _PER_PAGE
    shown, count = list(found[first : first + _PER_PAGE]), found.count()
    progress = progress_of_several(shown)
    rows: list[_Shown] = [(row, progress[row.pk]) for row in shown]
    return Table(
        caption="Online evaluations, the newest first",
        columns=[
            Column("evaluator", "Evaluator", lambda one: title_of(one[0].evaluator.name, scoring_number_of(one[0]))),
            Column("state", "State", lambda one: status(one[0].state)),
            Column("rate", "Share", lambda one: _sample(one[0])),
            Column("due", "Due", lambda one: due_in_words(one[1])),
            Column("done", "Done", lambda one: number(one[1].counts.done), is_numeric=True),
            Column("missing", "Missing", lambda one: missing_in_words(one[1].counts)),
            Column("spent", "Spent this month", lambda one: spent_in_words(*one), gives_way=True),
            Column("cost", "Last 24 hours", lambda one: money(one[1].last_day_usd), is_numeric=True),
        ],
        rows=rows,
        empty=_empty(visit),
        query=query,
        key=lambda one: visit.link("online_evaluation", visit.project.pk, one[0].pk),
        count=count,
        next_url=page_link(query, p=str(place + 1)) if first + _PER_PAGE < count else "",
        previous_url=page_link(query, p=str(place - 1)) if place > 1 else "",
    )


def _sample(row: OnlineEvaluation) -> str:
    return f"{share(row.rate)}, both arms alike" if row.matched else share(row.rate)


def _empty(visit: Visit) -> Empty:
    if not visit.may(Right.EDIT):
        return Empty(_NO_EVALUATION)
    if not _usable(visit.project.pk):
        return Empty(_NO_EVALUATOR, visit.link_if_there("evaluator_form"), "Make an evaluator")
    return Empty(_NO_EVALUATION, "#new-evaluation", "Make the first")
