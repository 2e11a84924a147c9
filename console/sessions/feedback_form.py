"""The form by which a person gives feedback on a session."""

from __future__ import annotations

from typing import Any

from django import forms

from analytics.models import FEEDBACK_CHARACTERS, MAX_FEEDBACK, MIN_FEEDBACK

_SCORES = [("", "no score"), *((str(score), str(score)) for score in range(MIN_FEEDBACK, MAX_FEEDBACK + 1))]


class FeedbackForm(forms.Form):
    score = forms.TypedChoiceField(
        label="Score, 5 is best", choices=_SCORES, required=False, coerce=int, empty_value=None
    )
    text = forms.CharField(
        label="What you say about it",
        required=False,
        max_length=FEEDBACK_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 2}),
    )

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if not self.errors and given.get("score") is None and not given.get("text"):
            self.add_error("score", "Give a score, a text or both.")
        return given
