"""The form that makes a review queue; the serializer of the API decides what is valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.http import QueryDict

from analytics.models.reviews import INSTRUCTIONS_CHARACTERS, QUEUE_NAME_CHARACTERS, RubricKind
from analytics.parameters.requests import filter_text
from analytics.parameters.values import parse_parameters
from analytics.reviews.services import MAX_ITEMS, NewQueue
from analytics.serializers.reviews import DEFAULT_ITEMS, NewReviewQueueSerializer
from core.ui.forms import show_errors
from core.ui.periods import CUSTOM, Period

_KINDS = (
    (RubricKind.BOOLEAN, "Yes or no"),
    (RubricKind.NUMBER, "A number"),
    (RubricKind.CATEGORY, "One of some labels"),
)
_MAX_FILTER_CHARACTERS = 4_000


class QueueForm(forms.Form):
    """The fields of a new queue. `filter` is written as in the address of the request log."""

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
        super().__init__(data, initial=initial)
        self.fields["evaluator_id"].choices = [("", "None"), *evaluators]  # type: ignore[attr-defined]
        self._period = period
        self._serializer: NewReviewQueueSerializer | None = None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        self._serializer = NewReviewQueueSerializer(data=self._body(cleaned))
        if not self._serializer.is_valid():
            show_errors(self, self._serializer.errors)
        return cleaned

    def new_queue(self) -> NewQueue:
        """Returns the queue of a form that is valid."""
        if self._serializer is None:
            raise ValueError("the form is not valid")
        return self._serializer.new_queue()

    def _body(self, cleaned: Mapping[str, Any]) -> dict[str, Any]:
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
