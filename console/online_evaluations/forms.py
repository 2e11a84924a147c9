"""The forms of online evaluations; the serializers of the API decide what is valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django import forms
from rest_framework.exceptions import ValidationError

from analytics.models import OnlineEvaluation
from analytics.online_evaluations.services import NewOnlineEvaluation
from analytics.parameters.values import parse_parameters
from analytics.serializers.online_evaluations import (
    MAX_BUDGET_USD,
    NewOnlineEvaluationSerializer,
    OnlineEvaluationChangeSerializer,
    require_both_arms,
)
from core.ui.forms import error_texts, show_errors
from core.wire.fields import MONEY_PLACES

_PER_CENT = 100
_MAX_FILTER_CHARACTERS = 4_000


class ChangeForm(forms.Form):
    """What an evaluation can be given at first and later. The share is in per cent."""

    rate = forms.FloatField(
        label="Share of the answers",
        min_value=0,
        max_value=_PER_CENT,
        initial=5,
        help_text="In per cent. With matched arms, of the arm with fewer answers.",
    )
    monthly_budget_usd = forms.DecimalField(
        label="Budget of a month",
        required=False,
        min_value=0,
        max_value=MAX_BUDGET_USD,
        decimal_places=MONEY_PLACES,
        help_text="In dollars, where the evaluator asks a model. Left empty, a tenth of the project's budget.",
    )
    filter = forms.CharField(
        label="Requests that match",
        required=False,
        max_length=_MAX_FILTER_CHARACTERS,
        help_text="By what is known before the answer, as in prompt_config_id=…&language=de. Empty for all.",
    )
    matched = forms.BooleanField(
        label="As many answers of both arms of each rollout, and no others",
        required=False,
        help_text="Scores of an online evaluation of this form can count in a rollout.",
    )
    label_share = forms.FloatField(
        label="Of these, labelled by people",
        required=False,
        min_value=0,
        max_value=_PER_CENT,
        help_text="In per cent. People label them in review queues. Empty for none.",
    )

    serializer: Any = OnlineEvaluationChangeSerializer

    @classmethod
    def of(cls, row: OnlineEvaluation, data: Mapping[str, Any] | None = None) -> ChangeForm:
        own = {
            "rate": f"{row.rate * _PER_CENT:g}",
            "monthly_budget_usd": None if row.monthly_budget_usd is None else row.monthly_budget_usd.normalize(),
            "filter": filter_text(row.filter),
            "matched": row.matched,
            "label_share": None if row.label_share is None else f"{row.label_share * _PER_CENT:g}",
        }
        return cls(data, initial=own)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        given = self.serializer(data=self.body(cleaned))
        if not given.is_valid():
            show_errors(self, given.errors)
            return cleaned
        self.given = given
        try:
            require_both_arms(given.validated_data["filter"], matched=given.validated_data["matched"])
        except ValidationError as error:
            self.add_error("filter", error_texts(error.detail))
        return cleaned

    def values(self) -> dict[str, Any]:
        """Returns the changes that a valid form makes."""
        values: dict[str, Any] = self.given.validated_data
        return values

    def body(self, cleaned: Mapping[str, Any]) -> dict[str, Any]:
        budget: Decimal | None = cleaned["monthly_budget_usd"]
        return {
            "rate": cleaned["rate"] / _PER_CENT,
            "monthly_budget_usd": None if budget is None else float(budget),
            "filter": parse_parameters(cleaned["filter"]),
            "matched": cleaned["matched"],
            # Nobody labels a share of 0.
            "label_share": cleaned["label_share"] / _PER_CENT if cleaned["label_share"] else None,
        }


class NewForm(ChangeForm):
    evaluator_id = forms.ChoiceField(
        label="Evaluator", help_text="Its newest version at the time of each sample scores."
    )

    field_order = ("evaluator_id", "rate", "monthly_budget_usd", "filter", "matched", "label_share")
    serializer = NewOnlineEvaluationSerializer

    def __init__(
        self, evaluators: Sequence[tuple[str, str]], data: Mapping[str, Any] | None = None, chosen: str = ""
    ) -> None:
        super().__init__(data, initial={"evaluator_id": chosen})
        self.fields["evaluator_id"].choices = evaluators  # type: ignore[attr-defined]
        self.has_evaluators = bool(evaluators)

    def body(self, cleaned: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().body(cleaned), "evaluator_id": cleaned["evaluator_id"]}

    def new_evaluation(self) -> NewOnlineEvaluation:
        """Returns the evaluation of a form that is valid."""
        new: NewOnlineEvaluation = self.given.new_evaluation()
        return new


def filter_text(filters: Mapping[str, Any]) -> str:
    return urlencode(filters, doseq=True)
