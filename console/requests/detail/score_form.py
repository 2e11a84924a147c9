from __future__ import annotations

from typing import Any

from django import forms

from analytics.models import REASON_CHARACTERS, SCORE_NAME_CHARACTERS, EvaluatorType, ScoreType
from analytics.scores.services import NewScore

_UP, _DOWN = "up", "down"
_MAX_NUMBER = 100


class ScoreForm(forms.Form):
    """`verdict` is the pressed button: `up`, `down` or `number` (0 to 100)."""

    score_name = forms.CharField(label="Name", initial="quality", max_length=SCORE_NAME_CHARACTERS)
    score_value = forms.FloatField(label="Value, 0 to 100", required=False, min_value=0, max_value=_MAX_NUMBER)
    reason = forms.CharField(
        label="Comment",
        required=False,
        max_length=REASON_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    verdict = forms.ChoiceField(choices=[(name, name) for name in (_UP, _DOWN, "number")], widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if given.get("verdict") == "number" and given.get("score_value") is None and "score_value" not in self.errors:
            self.add_error("score_value", "Give a number from 0 to 100.")
        return given

    def score(self, request_id: str) -> NewScore:
        given = self.cleaned_data
        is_thumb = given["verdict"] != "number"
        return NewScore(
            request_id=request_id,
            score_name=given["score_name"],
            score_value=float(given["verdict"] == _UP) if is_thumb else given["score_value"],
            score_type=(ScoreType.BOOLEAN if is_thumb else ScoreType.NUMBER).value,
            reason=given["reason"],
            evaluator_type=EvaluatorType.HUMAN,
        )
