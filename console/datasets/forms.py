from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict

from analytics.models.datasets import DATASET_NAME_CHARACTERS, DESCRIPTION_CHARACTERS, Dataset, DatasetRetention
from analytics.parameters.requests import filter_text
from analytics.parameters.values import parse_parameters
from analytics.queries.request_samples import SampleOrder
from analytics.serializers.datasets import (
    DEFAULT_ITEMS,
    MAX_ITEMS_AT_ONCE,
    FromRequestsSerializer,
    FromReviewSerializer,
    ItemChangeSerializer,
    OptionsSerializer,
)
from console.datasets.taking import FromExperiment
from core.ui.forms import show_errors
from core.ui.periods import CUSTOM, Period

NEW = ""
NAMED = ("request_id", "queue_id", "experiment_id", "positions")
"""The parameters that name what is taken, where it is not a filter."""
_RETENTIONS = (
    (DatasetRetention.PROJECT, "As long as the project keeps requests"),
    (DatasetRetention.KEPT, "Until they are deleted"),
)
_ORDERS = ((SampleOrder.RANDOM, "Spread over all that match"), (SampleOrder.NEWEST, "The newest"))


class DatasetForm(forms.Form):
    name = forms.CharField(max_length=DATASET_NAME_CHARACTERS)
    description = forms.CharField(
        required=False, max_length=DESCRIPTION_CHARACTERS, widget=forms.Textarea(attrs={"rows": 2})
    )
    retention = forms.ChoiceField(
        label="Keep items",
        choices=_RETENTIONS,
        initial=DatasetRetention.PROJECT,
        help_text="Items of a request that is deleted go in either case.",
    )


class TakeForm(forms.Form):
    """Takes requests into a set: those matching a filter, a single one, or those of a queue or an experiment."""

    shown_when: ClassVar[Mapping[str, tuple[str, Sequence[str]]]] = {"name": ("dataset", (NEW,))}

    dataset = forms.ChoiceField(label="Data set", required=False)
    name = forms.CharField(
        label="Name of the new set", required=False, max_length=DATASET_NAME_CHARACTERS, help_text="For a new one."
    )
    filter = forms.CharField(
        label="Requests that match",
        required=False,
        max_length=4_000,
        help_text="As in the address of Requests, such as outcome=error&min_latency_ms=5000. Empty for all.",
    )
    in_range = forms.BooleanField(label="Only requests of the chosen range", required=False, initial=True)
    order = forms.ChoiceField(label="Which", choices=_ORDERS, initial=SampleOrder.RANDOM, required=False)
    limit = forms.IntegerField(
        label="How many",
        required=False,
        initial=DEFAULT_ITEMS,
        min_value=1,
        max_value=MAX_ITEMS_AT_ONCE,
        help_text=f"At most {MAX_ITEMS_AT_ONCE:,}.",
    )
    tags = forms.CharField(required=False, max_length=1_000, help_text="Of the new items, with commas between them.")
    expect_answer = forms.BooleanField(label="The answers that were given are expected", required=False)
    expected = forms.ChoiceField(label="Expected answer", required=False)
    request_id = forms.UUIDField(required=False, widget=forms.HiddenInput)
    queue_id = forms.UUIDField(required=False, widget=forms.HiddenInput)
    experiment_id = forms.UUIDField(required=False, widget=forms.HiddenInput)
    positions = forms.CharField(required=False, max_length=6_000, widget=forms.HiddenInput)

    def __init__(
        self,
        datasets: list[Dataset],
        period: Period,
        data: Mapping[str, Any] | None = None,
        query: QueryDict | None = None,
        experiment: FromExperiment | None = None,
    ) -> None:
        query = query or QueryDict()
        named = {name: query[name] for name in NAMED if query.get(name)}
        # The page has another form, whose fields have names of these.
        super().__init__(data, auto_id="id_take_%s", initial={"filter": filter_text(query), **named})
        self._period = period
        self.experiment = experiment
        self.fields["dataset"] = forms.ChoiceField(
            label="Data set",
            required=False,
            choices=[*((str(row.pk), row.name) for row in datasets), (NEW, "A new one")],
        )
        if named or any((data or {}).get(name) for name in NAMED):
            for name in ("filter", "in_range", "order", "limit"):
                del self.fields[name]
        if experiment is None:
            del self.fields["expected"]
        else:
            del self.fields["expect_answer"]
            expected: Any = self.fields["expected"]
            expected.choices = experiment.expected_choices
        self.body: OptionsSerializer | None = None

    @property
    def words(self) -> str:
        if self.experiment is not None:
            return self.experiment.words
        if self["queue_id"].value():
            return "the requests of the review queue that are scored"
        request_id = self["request_id"].value()
        return f"request {request_id}" if request_id else ""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not cleaned.get("dataset") and not cleaned.get("name"):
            self.add_error("name", "A new data set needs a name.")
        if cleaned.get("experiment_id") and self.experiment is None:
            self.add_error(None, "There is no such experiment.")
        if self.errors:
            return cleaned
        self.body = self._serializer(cleaned)
        if not self.body.is_valid():
            show_errors(self, self.body.errors)
        return cleaned

    def _serializer(self, cleaned: Mapping[str, Any]) -> OptionsSerializer:
        if self.experiment is not None:
            return OptionsSerializer(data={"tags": tags_of(cleaned["tags"])})
        serializer = FromReviewSerializer if cleaned.get("queue_id") else FromRequestsSerializer
        return serializer(data=self._given(cleaned))

    def _given(self, cleaned: Mapping[str, Any]) -> dict[str, Any]:
        given: dict[str, Any] = {"tags": tags_of(cleaned["tags"]), "expect_answer": cleaned["expect_answer"]}
        if cleaned.get("queue_id"):
            return {**given, "queue_id": str(cleaned["queue_id"]), "states": ["done"]}
        if cleaned.get("request_id"):
            return {**given, "request_ids": [str(cleaned["request_id"])]}
        filters = parse_parameters(cleaned["filter"])
        if cleaned["in_range"]:
            # A named range ends now, and the second that is not over yet has requests too.
            end = {"end_date": self._period.end.isoformat()} if self._period.name == CUSTOM else {}
            filters = {"start_date": self._period.start.isoformat(), **end, **filters}
        order, limit = cleaned["order"] or str(SampleOrder.RANDOM), cleaned["limit"] or DEFAULT_ITEMS
        return {**given, "filter": filters, "order": order, "limit": limit}


class ItemForm(forms.Form):
    """Text that is JSON is stored as JSON, except a JSON string, which is stored as typed."""

    expected = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text="A text, or JSON such as an object. Empty if no answer is expected.",
    )
    tags = forms.CharField(required=False, max_length=1_100, help_text="With commas between them.")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        body = ItemChangeSerializer(data={"expected": _expected(cleaned["expected"]), "tags": tags_of(cleaned["tags"])})
        if not body.is_valid():
            show_errors(self, body.errors)
            return cleaned
        return dict(body.validated_data)


def tags_of(text: str) -> list[str]:
    return [tag.strip() for tag in text.split(",") if tag.strip()]


def expected_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False, indent=2)


def _expected(text: str) -> Any:
    # Browsers send line breaks as CRLF.
    text = text.replace("\r\n", "\n")
    if not text.strip():
        return None
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text
