from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.db.models import QuerySet
from django_filters import rest_framework as filters
from rest_framework.exceptions import ValidationError

from analytics.identifiers import canonical_request_id
from analytics.models import EVALUATOR_CHARACTERS, REQUEST_ID_CHARACTERS, SCORE_NAME_CHARACTERS, Score, ScoreType
from core.wire.fields import TimeField


class _TimeFormField(forms.Field):
    def __init__(self, *, end_of_day: bool = False, **options: Any) -> None:
        self._time = TimeField(end_of_day=end_of_day)
        super().__init__(**options)

    def to_python(self, value: Any) -> datetime | None:
        if value in self.empty_values:
            return None
        try:
            return self._time.to_internal_value(value)
        except ValidationError as error:
            raise forms.ValidationError([str(item) for item in error.detail]) from error


class TimeFilter(filters.Filter):  # type: ignore[misc]  # the package has no types
    field_class = _TimeFormField


class _RangeForm(forms.Form):
    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        start, end = cleaned.get("start_date"), cleaned.get("end_date")
        if start and end and start > end:
            self.add_error("end_date", "Must not be before start_date.")
        return cleaned


class ScoreFilter(filters.FilterSet):  # type: ignore[misc]  # the package has no types
    request_id = filters.CharFilter(method="of_request", max_length=REQUEST_ID_CHARACTERS, strip=False)
    score_name = filters.CharFilter(max_length=SCORE_NAME_CHARACTERS)
    score_type = filters.ChoiceFilter(choices=ScoreType.choices)
    evaluator_type = filters.CharFilter(max_length=EVALUATOR_CHARACTERS)
    start_date = TimeFilter(field_name="created_at", lookup_expr="gte")
    end_date = TimeFilter(field_name="created_at", lookup_expr="lte", end_of_day=True)

    class Meta:
        model = Score
        fields: tuple[str, ...] = ()
        form = _RangeForm

    def of_request(self, scores: QuerySet[Score], name: str, value: str) -> QuerySet[Score]:
        return scores.filter(request_id=canonical_request_id(value))
