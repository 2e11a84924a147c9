from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from rest_framework.exceptions import ValidationError

from analytics.evaluators.definitions import KINDS
from analytics.evaluators.selectors import KnownVersion
from analytics.models import OnlineEvaluation
from analytics.parameters.values import parse_parameters
from core.ui.forms import SerializerForm, error_texts, shown_value
from core.wire.fields import MONEY_PLACES
from gateway.evaluations.serializers import (
    MAX_BUDGET_USD,
    NewOnlineEvaluationSerializer,
    OnlineEvaluationChangeSerializer,
    require_both_arms,
)
from gateway.evaluations.services import NewOnlineEvaluation

_NO_LABELS = "A rule is right by definition and learns nothing from labels. Leave it empty, or choose a judge."
_PER_CENT = 100
_MAX_FILTER_CHARACTERS = 4_000


class ChangeForm(SerializerForm[Any]):
    """The fields that can be set at creation and later. The share is in percent."""

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
        help_text="In per cent, of what a judge scores. People label it in review queues. Empty for none.",
    )

    serializer: ClassVar[Any] = OnlineEvaluationChangeSerializer

    def __init__(self, record: OnlineEvaluation | None = None, data: Any = None, **options: Any) -> None:
        super().__init__(record, data, **options)
        if record is not None and record.label_share is None and not KINDS[record.evaluator.kind].asks_a_model:
            del self.fields["label_share"]

    def initial_of(self, record: OnlineEvaluation) -> dict[str, Any]:
        return {
            "rate": f"{record.rate * _PER_CENT:g}",
            "monthly_budget_usd": shown_value(record.monthly_budget_usd),
            "filter": filter_text(record.filter),
            "matched": record.matched,
            "label_share": None if record.label_share is None else f"{record.label_share * _PER_CENT:g}",
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if not self.errors:
            try:
                require_both_arms(self.values["filter"], matched=self.values["matched"])
            except ValidationError as error:
                self.add_error("filter", error_texts(error.detail))
        return cleaned

    def body(self) -> dict[str, Any]:
        cleaned = super().body()
        return {
            **cleaned,
            "rate": cleaned["rate"] / _PER_CENT,
            "filter": parse_parameters(cleaned["filter"]),
            # Nobody labels a share of 0.
            "label_share": cleaned["label_share"] / _PER_CENT if cleaned.get("label_share") else None,
        }


class NewForm(ChangeForm):
    evaluator_id = forms.ChoiceField(
        label="Evaluator", help_text="Its newest version at the time of each sample scores."
    )

    field_order = ("evaluator_id", "rate", "monthly_budget_usd", "filter", "matched", "label_share")
    serializer = NewOnlineEvaluationSerializer

    def __init__(self, evaluators: Sequence[KnownVersion], data: Any = None, chosen: str = "") -> None:
        super().__init__(None, data, initial={"evaluator_id": chosen})
        choices = [(str(one.evaluator_id), one.name) for one in evaluators]
        self.fields["evaluator_id"].choices = choices  # type: ignore[attr-defined]
        self.has_evaluators = bool(evaluators)
        self._rules = {str(one.evaluator_id) for one in evaluators if not one.definition.asks_a_model}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if cleaned.get("label_share") and cleaned.get("evaluator_id") in self._rules:
            self.add_error("label_share", _NO_LABELS)
        return cleaned

    def new_evaluation(self) -> NewOnlineEvaluation:
        new: NewOnlineEvaluation = self.given.new_evaluation()
        return new


def filter_text(filters: Mapping[str, Any]) -> str:
    return urlencode(filters, doseq=True)
