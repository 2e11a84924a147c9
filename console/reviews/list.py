"""The page of review queues: their progress, how far reviewers and judges agree, and the form for a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.html import format_html
from django.utils.safestring import SafeString

from analytics.evaluators.selectors import list_evaluators
from analytics.models.evaluators import EvaluatorState
from analytics.parameters.requests import filter_text
from analytics.presenters import reviews
from analytics.reviews.services import create_queue
from console.reviews.agreement_texts import agreement_lines
from console.reviews.forms import QueueForm
from core.audit.actors import actor_name
from core.errors import ApplicationError
from core.roles import Right
from core.ui.formats import NONE, moment
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table, page_link, page_number
from core.wire.pagination import Page as ListPage

_PER_PAGE = 20
_MAX_PAGE = 1_000


@register_page
class ReviewsPage(Page):
    route = "reviews/"
    name = "reviews"
    title = "Reviews"
    template = "reviews/list.html"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        query = visit.request.GET
        return self._form_context(visit, _form(visit), is_open=bool(filter_text(query) or "evaluator_id" in query))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [Panel.of_table("queues", "Queues", lambda: _table(visit))]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.EDIT)
        form = _form(visit, visit.request.POST.dict())
        if form.is_valid():
            try:
                row = create_queue(project_id=visit.project.pk, new=form.new_queue(), actor=visit.actor)
            except ApplicationError as error:
                form.add_error(_field_of(error, form), error.message)
            else:
                messages.success(visit.request, f"The queue {row.name} has {row.items.count()} requests.")
                return HttpResponseRedirect(visit.link("review", visit.project.pk, row.pk))
        return self.render(visit, self.panels(visit), **self._form_context(visit, form, is_open=True))

    def _form_context(self, visit: Visit, form: QueueForm, *, is_open: bool) -> dict[str, Any]:
        shown = {"form": form, "form_is_open": is_open, "may_edit": visit.may(Right.EDIT)}
        addresses = {"form_address": visit.link("reviews"), "labels_address": visit.link_if_there("review_labels")}
        return {**shown, **addresses}


def _form(visit: Visit, data: Mapping[str, Any] | None = None) -> QueueForm:
    active = list_evaluators(visit.project.pk).filter(state=EvaluatorState.ACTIVE)
    evaluators = [(str(row.pk), row.name) for row in active]
    return QueueForm(visit.period, evaluators, data, visit.request.GET)


def _table(visit: Visit) -> Table:
    number = page_number(visit.request.GET, maximum=_MAX_PAGE)
    listing = reviews.queues(visit.project.pk, ListPage(_PER_PAGE, (number - 1) * _PER_PAGE))
    query = visit.request.GET
    return Table(
        caption="Review queues, the latest first",
        columns=[
            Column("name", "Queue", cell=lambda row: row["name"]),
            Column("state", "State", cell=_state),
            Column("score_name", "Score", cell=_score_name),
            Column("progress", "Progress", cell=_progress),
            Column("agreement", "Agreement with judges", cell=lambda row: _agreement(visit, row)),
            Column("created_by", "Made by", cell=lambda row: actor_name(row["created_by"]), is_default=False),
            Column("created_at", "Made", cell=lambda row: moment(row["created_at"])),
        ],
        rows=listing.results,
        empty=Empty("No request is reviewed yet: make a queue of those that matter, and score them by hand."),
        query=query,
        key=lambda row: visit.link("review", visit.project.pk, row["id"]),
        has_chooser=True,
        next_url=page_link(query, p=str(number + 1)) if number * _PER_PAGE < listing.count else "",
        previous_url=page_link(query, p=str(number - 1)) if number > 1 else "",
        count=listing.count,
    )


def _state(row: Mapping[str, Any]) -> SafeString:
    if row["state"] == "closed":
        return status("closed", "neutral")
    return status("open", "neutral") if row["progress"]["open"] else status("done", "good")


def _score_name(row: Mapping[str, Any]) -> str:
    return f"{row['score_name']} ({row['kind']}{', due labels' if row['due_labels'] else ''})"


def _progress(row: Mapping[str, Any]) -> SafeString:
    found = row["progress"]
    seen = found["done"] + found["skipped"]
    return format_html(
        '<progress value="{}" max="{}" aria-label="Progress of {}"></progress> <span class="nowrap">{} of {}</span>',
        seen, max(found["items"], 1), row["name"], seen, found["items"],
    )  # fmt: skip


def _agreement(visit: Visit, row: Mapping[str, Any]) -> str:
    if not row["progress"]["done"]:
        return NONE
    return "; ".join(agreement_lines(reviews.agreement(visit.project.pk, row["id"]))) or NONE


def _field_of(error: ApplicationError, form: QueueForm) -> str | None:
    """Returns the form's field that the error names; None for an error of the whole."""
    named = next(iter(error.details or ()), "")
    return named if named in form.fields else None
