"""The page of one online evaluation: what became of the answers that were due, the money, and the form of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase

from analytics.models import OnlineEvaluation
from analytics.models.online_evaluations import EvaluationState
from analytics.online_evaluations import services
from analytics.online_evaluations.errors import OnlineEvaluationNotFoundError
from analytics.online_evaluations.selectors import (
    Counts,
    Labels,
    get_online_evaluation,
    progress_of,
    scoring_number_of,
)
from console.online_evaluations.forms import ChangeForm, filter_text
from console.online_evaluations.words import missing_in_words, oldest_in_words, spent_in_words
from core.audit.actors import actor_name
from core.errors import ApplicationError
from core.roles import Right
from core.ui.formats import moment, money, number, share
from core.ui.forms import refuse
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page

_REFRESH_SECONDS = 30


@register_page
class OnlineEvaluationPage(Page):
    route = "online-evaluations/<uuid:project_id>/<uuid:evaluation_id>/"
    name = "online_evaluation"
    title = "Online evaluation"
    template = "online_evaluations/evaluation.html"
    parent = "online_evaluations"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        row = _row(visit, route["evaluation_id"])
        return _shown(visit, row, ChangeForm.of(row), is_open=False)

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        evaluation_id: UUID = route["evaluation_id"]
        template = "online_evaluations/figures.html"
        return [
            Panel(
                "figures",
                "What became of the answers",
                template,
                lambda: _figures(visit, evaluation_id),
                refresh_seconds=_REFRESH_SECONDS,
            )
        ]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.EDIT)
        row = _row(visit, route["evaluation_id"])
        action = _ACTIONS.get(visit.request.POST.get("action", ""))
        if action is not None:
            try:
                return HttpResponseRedirect(action(visit, row))
            except ApplicationError as error:
                messages.error(visit.request, error.message)
                return HttpResponseRedirect(_own(visit, row))
        form = ChangeForm.of(row, visit.request.POST.dict())
        if form.is_valid():
            try:
                _change(visit, row, form.values())
            except ApplicationError as error:
                refuse(form, error)
            else:
                messages.success(visit.request, "Saved. Samples that were taken stay.")
                return HttpResponseRedirect(_own(visit, row))
        return self.render(visit, self.panels(visit, **route), **_shown(visit, row, form, is_open=True))


def _row(visit: Visit, evaluation_id: UUID) -> OnlineEvaluation:
    try:
        return get_online_evaluation(visit.project.pk, evaluation_id)
    except OnlineEvaluationNotFoundError as error:
        raise Http404(error.message) from error


def _own(visit: Visit, row: OnlineEvaluation) -> str:
    return visit.link("online_evaluation", visit.project.pk, row.pk)


def _change(visit: Visit, row: OnlineEvaluation, values: Mapping[str, Any]) -> None:
    services.change_online_evaluation(
        project_id=visit.project.pk, evaluation_id=row.pk, values=values, actor=visit.actor
    )


def _pause(visit: Visit, row: OnlineEvaluation) -> str:
    _change(visit, row, {"state": EvaluationState.PAUSED})
    messages.success(visit.request, "Paused: no sample is taken, and what is due is skipped.")
    return _own(visit, row)


def _resume(visit: Visit, row: OnlineEvaluation) -> str:
    _change(visit, row, {"state": EvaluationState.ACTIVE})
    messages.success(visit.request, "Resumed: answers to requests that arrive from now on are scored.")
    return _own(visit, row)


def _delete(visit: Visit, row: OnlineEvaluation) -> str:
    services.delete_online_evaluation(project_id=visit.project.pk, evaluation_id=row.pk, actor=visit.actor)
    messages.success(visit.request, "Deleted. Its scores stay.")
    return visit.link("online_evaluations")


_ACTIONS: Mapping[str, Callable[[Visit, OnlineEvaluation], str]] = {
    "pause": _pause,
    "resume": _resume,
    "delete": _delete,
}


def _shown(visit: Visit, row: OnlineEvaluation, form: ChangeForm, *, is_open: bool) -> dict[str, Any]:
    return {
        "title": row.evaluator.name,
        "mark": status(row.state),
        "is_active": row.state == EvaluationState.ACTIVE,
        "number": scoring_number_of(row),
        "is_newest": row.version_id is None,
        "rate": share(row.rate),
        "matched": row.matched,
        "filter": filter_text(row.filter),
        "made_by": actor_name(row.created_by),
        "made_at": moment(row.created_at),
        "evaluator_address": visit.link_if_there("evaluator", row.evaluator_id),
        "list_address": visit.link("online_evaluations"),
        "own_address": _own(visit, row),
        "form": form,
        "form_is_open": is_open,
        "may_edit": visit.may(Right.EDIT),
    }


def _figures(visit: Visit, evaluation_id: UUID) -> Mapping[str, Any]:
    row = _row(visit, evaluation_id)
    found = progress_of(row)
    money_of = [
        ("Spent this month", spent_in_words(row, found)),
        ("Reserved for what is being judged", money(found.reserved_usd)),
        ("Cost of the last 24 hours", money(found.last_day_usd)),
    ]
    oldest = found.oldest_due_at
    return {
        "kept": list(_counts(found.counts)),
        "hour": list(_counts(found.last_hour)),
        "labels": list(_labels(found.labels)) if row.label_share is not None or found.labels.sampled else [],
        "labels_address": _labels_address(visit, row),
        "money": money_of if row.monthly_budget_usd is not None or found.spent_usd else [],
        "oldest": "" if oldest is None else oldest_in_words(oldest),
        "sampled_until": moment(row.sampled_until),
    }


def _labels_address(visit: Visit, row: OnlineEvaluation) -> str:
    return visit.link_if_there("review_labels", evaluator_id=str(row.evaluator_id), count="20")


def _labels(labels: Labels) -> Iterator[tuple[str, str]]:
    yield "To be labelled", number(labels.sampled)
    yield "Due", number(labels.due)
    yield "Given", number(labels.given)
    yield "Missing", number(labels.missing)


def _counts(counts: Counts) -> Iterator[tuple[str, str]]:
    yield "Sampled", number(counts.sampled)
    yield "Due", number(counts.due)
    yield "Done", number(counts.done)
    yield "Missing", missing_in_words(counts)
