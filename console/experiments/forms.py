"""The form of an experiment: two candidates, the past requests, and a judge. The API's serializer validates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from rest_framework.exceptions import ValidationError as InvalidBody

from analytics.models import SavedView
from analytics.parameters.requests import RequestParameters
from analytics.parameters.values import Given, parse_parameters
from analytics.queries.request_samples import SampleOrder
from analytics.request_log.record import Outcome
from core.errors import ApplicationError
from gateway.experiments.serializers import DEFAULT_ITEMS, NewExperimentSerializer
from gateway.experiments.services import MAX_ITEMS, NewExperiment
from prompts.models import PromptConfig, PromptVersion

SIDES = ("a", "b")
FILTERS = (
    "prompt_config_id", "prompt_version", "model", "user_id", "session_id", "outcome", "error_code", "min_latency_ms",
)  # fmt: skip
MAX_VERSIONS = 200

_ORDERS = [(SampleOrder.NEWEST.value, "the newest"), (SampleOrder.RANDOM.value, "a random sample, the same each time")]
_OUTCOMES = [("", "any"), *((outcome.value, outcome.value) for outcome in Outcome)]


class ExperimentForm(forms.Form):
    """The form of a new experiment: its candidates, and the past requests whose items they answer."""

    prompt_config_id = forms.ChoiceField(required=False, label="Prompt")
    prompt_version = forms.IntegerField(required=False, min_value=1, label="Served version")
    model = forms.CharField(required=False, max_length=200, label="Answered by model")
    user_id = forms.CharField(required=False, max_length=200, label="User")
    session_id = forms.CharField(required=False, max_length=200, label="Session")
    outcome = forms.ChoiceField(required=False, choices=_OUTCOMES, label="Outcome")
    error_code = forms.CharField(required=False, max_length=200, label="Error code")
    min_latency_ms = forms.IntegerField(required=False, min_value=0, label="Slower than (ms)")
    view = forms.ChoiceField(required=False, label="Saved view of requests")
    # Further filters of the request log, as an address writes them.
    further = forms.CharField(required=False, max_length=4000, widget=forms.HiddenInput)
    order = forms.ChoiceField(choices=_ORDERS, label="Take")
    item_limit = forms.IntegerField(
        min_value=1, max_value=MAX_ITEMS, label="Number of items", help_text=f"At most {MAX_ITEMS}."
    )
    judge = forms.BooleanField(required=False, label="Have the judge model score each answer")

    def __init__(self, project_id: UUID, views: Sequence[SavedView], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._queries = {str(view.pk): view.query for view in views}
        view_field: Any = self.fields["view"]
        view_field.choices = [("", "none"), *((str(view.pk), view.name) for view in views)]
        choices = _version_choices(project_id)
        for side in SIDES:
            label = side.upper()
            self.fields[side] = forms.ChoiceField(choices=choices, required=False, label=f"Prompt version of {label}")
            self.fields[f"{side}_model"] = forms.CharField(
                required=False,
                max_length=200,
                label=f"Model of {label}",
                help_text="Empty: the request's.",
                widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off"}),
            )
            self.fields[f"{side}_temperature"] = forms.FloatField(
                required=False, min_value=0, max_value=2, label=f"Temperature of {label}"
            )
        configs = PromptConfig.objects.for_project(project_id).order_by("name").values_list("pk", "name")
        field: Any = self.fields["prompt_config_id"]
        field.choices = [("", "any or none"), *((str(pk), name) for pk, name in configs)]

    def side(self, name: str) -> list[forms.BoundField]:
        return [self[name], self[f"{name}_model"], self[f"{name}_temperature"]]

    @property
    def side_a(self) -> list[forms.BoundField]:
        return self.side("a")

    @property
    def side_b(self) -> list[forms.BoundField]:
        return self.side("b")

    @property
    def filter_fields(self) -> list[forms.BoundField]:
        return [*(self[name] for name in FILTERS), *([self["view"]] if self._queries else [])]

    @property
    def further_filters(self) -> list[str]:
        """The filters that the form has no fields for, in words."""
        given = _known(str(self["further"].value() or ""))
        return [f"{name.replace('_', ' ')} {in_words(value)}" for name, value in given.items()]

    def new_experiment(self, start: str, end: str) -> NewExperiment | None:
        """Returns the experiment of a form that is valid, of items in the range; None with the faults as errors."""
        data = self.cleaned_data
        own = {name: data[name] for name in FILTERS if data.get(name) not in ("", None)}
        filters = {**_known(self._queries.get(data["view"], "")), **_known(data["further"]), **own}
        body = {
            "candidates": [self._candidate(side) for side in SIDES],
            "filter": {**filters, "start_date": start, "end_date": end},
            "order": data["order"],
            "item_limit": data["item_limit"],
            "judge": data["judge"],
        }
        given = NewExperimentSerializer(data=body)
        try:
            given.is_valid(raise_exception=True)
        except InvalidBody as error:
            self.add_error(None, _first(error.detail))
            return None
        return given.new_experiment()

    def refuse(self, error: ApplicationError) -> None:
        self.add_error(None, _in_words(error.message))

    def _candidate(self, side: str) -> dict[str, Any]:
        data = self.cleaned_data
        fields = {
            "version_id": data[side],
            "model": data[f"{side}_model"],
            "temperature": data[f"{side}_temperature"],
        }
        return {name: value for name, value in fields.items() if value not in ("", None)}


def in_words(value: Any) -> str:
    """Returns the values of a filter, of which one is enough."""
    return " or ".join(map(str, value)) if isinstance(value, list) else str(value)


def initial_of(given: Given, config_id: str) -> dict[str, Any]:
    """Returns what the address says of the form. A field has one value: several stay with the further filters."""
    names = (*FILTERS, *(f"{side}{part}" for side in SIDES for part in ("", "_model", "_temperature")), "order")
    found: dict[str, Any] = {name: given[name] for name in names if given.get(name) and isinstance(given[name], str)}
    others = {name: value for name, value in _filters(given).items() if name not in found}
    return {
        "prompt_config_id": config_id,
        "view": given.get("view", ""),
        "further": urlencode(others, doseq=True),
        "order": SampleOrder.NEWEST.value,
        "item_limit": given.get("item_limit") or DEFAULT_ITEMS,
        "judge": given.get("judge") == "on",
        **found,
    }


def _known(query: str) -> Given:
    """Returns the filters of the request log in an address's query, without its range of time."""
    return _filters(parse_parameters(query))


def _filters(given: Given) -> Given:
    known = set(RequestParameters().fields) - {"start_date", "end_date"}
    return {name: value for name, value in given.items() if name in known}


def _version_choices(project_id: UUID) -> list[tuple[str, str]]:
    rows = PromptVersion.objects.filter(config__project_id=project_id).select_related("config")
    found = rows.order_by("config__name", "-number")[:MAX_VERSIONS]
    return [("", "as the request was served"), *((str(row.pk), _label(row)) for row in found)]


def _label(row: PromptVersion) -> str:
    active = " (active)" if row.config.active_version_id == row.pk else ""
    return f"{row.config.name} version {row.number}{active}"


def _in_words(message: str) -> str:
    return message.replace("candidates.0", "A").replace("candidates.1", "B")


def _first(detail: Any) -> str:
    """Returns the first message of DRF's nested errors, with the field that it belongs to."""
    if isinstance(detail, Mapping):
        name, inner = next(iter(detail.items()))
        return f"{name}: {_first(inner)}"
    return _first(detail[0]) if isinstance(detail, list) else str(detail)
