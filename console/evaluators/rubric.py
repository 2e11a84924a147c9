"""The editor of a judge's rubric: up to five criteria of up to nine labels each, as rows that may stay empty.

It works without scripts: a button requests the form with one more criterion and one more label each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django import forms

from analytics.evaluators.definitions import MAX_CRITERIA, MAX_LABELS

MORE = "more"
_MIN_LABELS = 2


class LabelForm(forms.Form):
    name = forms.CharField(required=False, max_length=50, label="Label")
    score = forms.FloatField(
        required=False, min_value=0, max_value=1, label="Score", widget=forms.NumberInput(attrs={"step": "any"})
    )
    meaning = forms.CharField(
        required=False, max_length=10_000, label="Meaning of the label", widget=forms.Textarea(attrs={"rows": 1})
    )


class CriterionForm(forms.Form):
    name = forms.CharField(
        required=False, max_length=50, label="Name", help_text="Small letters, digits and underscores: names_the_price."
    )
    meaning = forms.CharField(
        required=False,
        max_length=10_000,
        label="Meaning",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="One failure that can be told: every price stands in the conversation.",
    )

    def __init__(self, data: Mapping[str, Any] | None, prefix: str, given: Mapping[str, Any], rows: int) -> None:
        super().__init__(data, prefix=prefix, initial=_texts_of(given))
        labels: Sequence[Mapping[str, Any]] = given.get("labels") or ()
        self.labels = [
            LabelForm(data, prefix=f"{prefix}-labels-{place}", initial=_item(labels, place)) for place in range(rows)
        ]

    @property
    def is_empty(self) -> bool:
        return _is_empty(self) and all(map(_is_empty, self.labels))

    @property
    def filled(self) -> list[LabelForm]:
        return [label for label in self.labels if not _is_empty(label)]

    def value(self) -> dict[str, Any]:
        return {**_values(self), "labels": [_values(label) for label in self.filled]}


class Rubric:
    def __init__(self, data: Mapping[str, Any] | None, criteria: Sequence[Mapping[str, Any]]) -> None:
        self.rows = list(_sent(data) if data is not None else _shown(criteria))

    @property
    def has_room(self) -> bool:
        return len(self.rows) < MAX_CRITERIA or any(len(row.labels) < MAX_LABELS for row in self.rows)

    def is_valid(self) -> bool:
        forms_of_rows: list[forms.Form] = [form for row in self.rows for form in (row, *row.labels)]
        # All are read, so that all faults are shown at once.
        valid = [form.is_valid() for form in forms_of_rows]
        return all(valid)

    def criteria(self) -> list[dict[str, Any]]:
        return [row.value() for row in self._filled]

    def refuse(self, place: str, problem: str) -> None:
        """Shows a problem at the API's path inside `criteria`, such as `0.labels.1.score`."""
        parts = place.split(".")
        row = _at(self._filled, parts[0]) or self.rows[0]
        label = _at(row.filled, parts[2]) if len(parts) > 2 else None
        form: forms.Form = label or row
        form.add_error(parts[-1] if parts[-1] in form.fields else None, problem)

    @property
    def _filled(self) -> list[CriterionForm]:
        return [row for row in self.rows if not row.is_empty]


def _shown(criteria: Sequence[Mapping[str, Any]]) -> Iterator[CriterionForm]:
    for place in range(max(len(criteria), 1)):
        given = _item(criteria, place)
        rows = max(len(given.get("labels") or ()), _MIN_LABELS)
        yield CriterionForm(None, f"criteria-{place}", given, rows)


def _sent(data: Mapping[str, Any]) -> Iterator[CriterionForm]:
    more = 1 if data.get("action") == MORE else 0
    sent = sum(f"criteria-{place}-name" in data for place in range(MAX_CRITERIA))
    for place in range(min(max(sent, 1) + more, MAX_CRITERIA)):
        prefix = f"criteria-{place}"
        labels = sum(f"{prefix}-labels-{row}-name" in data for row in range(MAX_LABELS))
        rows = min(labels + more, MAX_LABELS) if labels else _MIN_LABELS
        yield CriterionForm(data, prefix, {}, rows)


def _texts_of(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in ("name", "meaning") if name in given}


def _item(items: Sequence[Mapping[str, Any]], place: int) -> dict[str, Any]:
    return dict(items[place]) if place < len(items) else {}


def _is_empty(form: forms.Form) -> bool:
    return not any(str(form[name].value() or "").strip() or form[name].value() == 0 for name in form.fields)


def _values(form: forms.Form) -> dict[str, Any]:
    return {name: value for name, value in form.cleaned_data.items() if value not in ("", None)}


def _at(rows: Sequence[Any], place: str) -> Any:
    return rows[int(place)] if place.isdecimal() and int(place) < len(rows) else None
