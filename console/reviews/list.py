from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.utils.html import format_html
from django.utils.safestring import SafeString

from analytics.evaluators.selectors import list_evaluators
from analytics.models.evaluators import EvaluatorState
from analytics.models.reviews import INSTRUCTIONS_CHARACTERS, QUEUE_NAME_CHARACTERS, RubricKind
from analytics.parameters.requests import filter_text
from analytics.parameters.values import parse_parameters
from analytics.presenters import reviews
from analytics.reviews.services import MAX_ITEMS, NewQueue, create_queue
from analytics.serializers.reviews import DEFAULT_ITEMS, NewReviewQueueSerializer
from console.reviews.agreement_texts import agreement_lines
from core.audit.actors import actor_name
from core.roles import Right
from core.ui.edit import EditPage
from core.ui.formats import NONE, moment
from core.ui.forms import SerializerForm
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.periods import CUSTOM, Period
from core.ui.tables import Column, Empty, Numbered, Table

_PER_PAGE = 20
_MAX_PAGE = 1_000


_KINDS = (
    (RubricKind.BOOLEAN, "Yes or no"),
    (RubricKind.NUMBER, "A number"),
    (RubricKind.CATEGORY, "One of some labels"),
)
_MAX_FILTER_CHARACTERS = 4_000


class QueueForm(SerializerForm[NewReviewQueueSerializer]):
    """`filter` is written as in the address of the request log."""

    serializer = NewReviewQueueSerializer
    shown_when = {
        "labels": ("kind", (RubricKind.CATEGORY.value,)),
        "minimum": ("kind", (RubricKind.NUMBER.value,)),
        "maximum": ("kind", (RubricKind.NUMBER.value,)),
    }

    name = forms.CharField(max_length=QUEUE_NAME_CHARACTERS)
    score_name = forms.CharField(
        label="What is scored", max_length=100, help_text="The name of the scores, such as helpful or tone."
    )
    kind = forms.ChoiceField(label="Answer with", choices=_KINDS, initial=RubricKind.BOOLEAN)
    labels = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="For labels: 2 to 9, one a line. They get the keys 1 to 9.",
    )
    minimum = forms.FloatField(required=False, help_text="For a number; 1 if left empty.")
    maximum = forms.FloatField(required=False, help_text="For a number; 5 if left empty.")
    instructions = forms.CharField(
        required=False,
        max_length=INSTRUCTIONS_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="What reviewers should look at.",
    )
    filter = forms.CharField(
        label="Requests that match",
        required=False,
        max_length=_MAX_FILTER_CHARACTERS,
        help_text="As in the address of Requests, such as outcome=error&min_latency_ms=5000. Empty for all.",
    )
    in_range = forms.BooleanField(label="Only requests of the chosen range", required=False, initial=True)
    sample_size = forms.IntegerField(
        label="How many", initial=DEFAULT_ITEMS, min_value=1, max_value=MAX_ITEMS, help_text=f"At most {MAX_ITEMS:,}."
    )
    compared_score_name = forms.CharField(
        label="Compare with the scores",
        required=False,
        max_length=100,
        help_text="The name of a judge's scores, if it is another than that above.",
    )

    evaluator_id = forms.ChoiceField(
        label="Labels for the evaluator",
        required=False,
        help_text="The answers calibrate it. Not for labels.",
    )

    def __init__(
        self,
        period: Period,
        evaluators: Sequence[tuple[str, str]],
        data: Mapping[str, Any] | None = None,
        query: QueryDict | None = None,
    ) -> None:
        chosen = query.get("evaluator_id", "") if query else ""
        named = dict(evaluators).get(chosen, "")
        initial = {"filter": filter_text(query) if query else "", "evaluator_id": chosen, "score_name": named}
        super().__init__(None, data, initial=initial)
        self.fields["evaluator_id"].choices = [("", "None"), *evaluators]  # type: ignore[attr-defined]
        self._period = period

    def new_queue(self) -> NewQueue:
        return self.given.new_queue()

    def body(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        kind = cleaned["kind"]
        evaluator = cleaned["evaluator_id"] or None
        names = ("name", "score_name", "kind", "instructions", "sample_size", "compared_score_name")
        body: dict[str, Any] = {name: cleaned[name] for name in names}
        body["evaluator_id"] = evaluator
        body["filter"] = parse_parameters(cleaned["filter"])
        if cleaned["in_range"]:
            # A named range ends now, and the second that is not over yet has requests too.
            end = {"end_date": self._period.end.isoformat()} if self._period.name == CUSTOM else {}
            body["filter"] = {"start_date": self._period.start.isoformat(), **end, **body["filter"]}
        if kind == RubricKind.CATEGORY:
            body["labels"] = [label.strip() for label in cleaned["labels"].splitlines() if label.strip()]
        if kind == RubricKind.NUMBER:
            body.update(minimum=cleaned["minimum"], maximum=cleaned["maximum"])
        return body


class ReviewsPage(EditPage[None, QueueForm]):
    route = "reviews/"
    name = "reviews"
    title = "Reviews"
    right = Right.EDIT

    def form(self, visit: Visit, record: None, data: Any = None) -> QueueForm:
        active = list_evaluators(visit.project.pk).filter(state=EvaluatorState.ACTIVE)
        return QueueForm(visit.period, [(str(row.pk), row.name) for row in active], data, visit.request.GET)

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [Panel.of_table("queues", "Queues", lambda: _table(visit))]

    def save(self, visit: Visit, record: None, form: QueueForm) -> HttpResponseBase:
        row = create_queue(project_id=visit.project.pk, new=form.new_queue(), actor=visit.actor)
        said = f"The queue {row.name} has {row.items.count()} requests."
        return visit.done(said, visit.link("review", visit.project.pk, row.pk))

    def shown(self, visit: Visit, record: None, form: QueueForm) -> Mapping[str, Any]:
        query = visit.request.GET
        return {
            "form_is_open": form.is_bound or filter_text(query) or "evaluator_id" in query,
            "form_address": visit.link("reviews"),
            "labels_address": visit.link_if_there("review_labels"),
        }


def _table(visit: Visit) -> Table:
    numbered = Numbered(visit.request.GET, _PER_PAGE, _MAX_PAGE)
    listing = reviews.queues(visit.project.pk, numbered.page)
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
        key=lambda row: visit.link("review", visit.project.pk, row["id"]),
        has_chooser=True,
        **numbered.links(listing.count),
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
