from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.http import QueryDict
from rest_framework.exceptions import ValidationError as InvalidBody

from analytics.datasets.selectors import list_datasets
from analytics.models import SavedView
from analytics.parameters.requests import RequestParameters
from analytics.parameters.values import Given, parse_parameters
from analytics.queries.request_samples import SampleOrder
from analytics.request_log.record import Outcome
from console.experiments.evaluators import EvaluatorForm, evaluator_rows, initial_evaluators
from core.errors import ApplicationError
from gateway.experiments.plan import DEFAULT_MARGIN, MAX_ITEMS, NewExperiment
from gateway.experiments.serializers import (
    DEFAULT_ITEMS,
    DEFAULT_ITEMS_OF_DATASET,
    MAX_COST_USD,
    MAX_REPEATS,
    NewExperimentSerializer,
)
from gateway.tables.experiment import LABELS
from prompts.models import PromptConfig, PromptVersion

SIDES = ("a", "b", "c", "d")
NONE, SERVED = "none", "served"
FILTERS = (
    "prompt_config_id", "prompt_version", "model", "user_id", "session_id", "outcome", "error_code", "min_latency_ms",
)  # fmt: skip
MAX_VERSIONS = 200

_OTHERS = ("dataset_version", "repeats", "baseline", "margin", "max_cost_usd")
_AS_SERVED = "as the input was served"

_ORDERS = [(SampleOrder.NEWEST.value, "the newest"), (SampleOrder.RANDOM.value, "a random sample, the same each time")]
_OUTCOMES = [("", "any"), *((outcome.value, outcome.value) for outcome in Outcome)]


class ExperimentForm(forms.Form):
    shown_when: ClassVar[Mapping[str, tuple[str, Sequence[str]]]] = {
        "dataset_version": ("dataset", ("*",)),
        "order": ("dataset", ("",)),
    }

    dataset = forms.ChoiceField(required=False, label="Inputs")
    dataset_version = forms.IntegerField(
        required=False, min_value=1, label="Version of the data set", help_text="Empty: the latest."
    )
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
        required=False,
        min_value=1,
        max_value=MAX_ITEMS,
        label="Number of items",
        help_text=f"At most {MAX_ITEMS:,}. Empty: {DEFAULT_ITEMS}, or {DEFAULT_ITEMS_OF_DATASET} of a data set.",
    )
    judge = forms.BooleanField(required=False, label="Have the judge model score each answer")
    repeats = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_REPEATS,
        label="Repeats",
        help_text=f"Answers of a candidate to each item, 1 to {MAX_REPEATS}.",
    )
    baseline = forms.ChoiceField(
        required=False,
        choices=[*((label, label) for label in LABELS), ("", "none: no verdict")],
        label="Baseline",
        help_text="The others are compared with it, by the evaluators.",
    )
    margin = forms.FloatField(
        required=False,
        label="Margin",
        help_text="The largest loss of the mean score that does no harm, between 0 and 1.",
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    max_cost_usd = forms.DecimalField(
        required=False,
        max_value=MAX_COST_USD,
        label="Maximal cost ($)",
        help_text="No more is spent than this. Empty: the project's budget alone.",
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    reuse = forms.BooleanField(
        required=False,
        label="Take answers and scores that are there already",
        help_text="Of earlier experiments with the same candidate and item of a data set; they cost nothing again.",
    )

    def __init__(self, project_id: UUID, views: Sequence[SavedView], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._queries = {str(view.pk): view.query for view in views}
        self._set_choices("view", [("", "none"), *((str(view.pk), view.name) for view in views)])
        versions = _version_choices(project_id)
        for side in SIDES:
            self._add_side(side, versions)
        configs = PromptConfig.objects.for_project(project_id).order_by("name").values_list("pk", "name")
        self._set_choices("prompt_config_id", [("", "any or none"), *((str(pk), name) for pk, name in configs)])
        datasets = [
            (str(row.pk), f"{row.name}, version {row.version}, {row.item_count:,} items")
            for row in list_datasets(project_id)
        ]
        self.has_datasets = bool(datasets)
        self._set_choices("dataset", [("", "past requests"), *datasets])
        data = self.data if self.is_bound else None
        self.evaluators = [EvaluatorForm(row, data, self.initial) for row in evaluator_rows(project_id)]

    def _set_choices(self, name: str, choices: Sequence[tuple[str, str]]) -> None:
        field: Any = self.fields[name]
        field.choices = choices

    def _add_side(self, side: str, versions: Sequence[tuple[str, str]]) -> None:
        label = side.upper()
        first = {"a": [("", _AS_SERVED)], "b": [("", _AS_SERVED), (NONE, "no B: one candidate over a data set")]}
        others = [("", f"no {label}"), (SERVED, _AS_SERVED)]
        choices = [*first.get(side, others), *versions]
        self.fields[side] = forms.ChoiceField(choices=choices, required=False, label=f"Prompt version of {label}")
        self.fields[f"{side}_model"] = forms.CharField(
            required=False,
            max_length=200,
            label=f"Model of {label}",
            help_text="Empty: the input's.",
            widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off"}),
        )
        self.fields[f"{side}_temperature"] = forms.FloatField(
            required=False, min_value=0, max_value=2, label=f"Temperature of {label}"
        )

    def is_valid(self) -> bool:
        # All rows are read, so that all faults are shown at once.
        rows = [row.is_valid() for row in self.evaluators]
        return super().is_valid() and all(rows)

    def side(self, name: str) -> list[forms.BoundField]:
        return [self[name], self[f"{name}_model"], self[f"{name}_temperature"]]

    @property
    def sides(self) -> list[tuple[str, list[forms.BoundField]]]:
        return [(side.upper(), self.side(side)) for side in SIDES]

    @property
    def has_further_sides(self) -> bool:
        return any(field.value() or field.errors for side in SIDES[2:] for field in self.side(side))

    @property
    def is_of_dataset(self) -> bool:
        return bool(self["dataset"].value())

    @property
    def limit_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in ("repeats", "baseline", "margin", "max_cost_usd", "reuse")]

    @property
    def filter_fields(self) -> list[forms.BoundField]:
        return [*(self[name] for name in FILTERS), *([self["view"]] if self._queries else [])]

    @property
    def further_filters(self) -> list[str]:
        given = _known(str(self["further"].value() or ""))
        return [f"{name.replace('_', ' ')} {in_words(value)}" for name, value in given.items()]

    def new_experiment(self, start: str, end: str) -> NewExperiment | None:
        """Returns the experiment on items of the range; None with the faults as errors of the form."""
        given = NewExperimentSerializer(data=self._body(start, end))
        try:
            given.is_valid(raise_exception=True)
        except InvalidBody as error:
            for path, problem in _problems(error.detail):
                self._add_problem(path, problem)
            return None
        return given.new_experiment()

    def refuse(self, error: ApplicationError) -> None:
        """Shows a refusal at the field that it names, or above the form."""
        named = [(path, str(texts[0])) for path, texts in (error.details or {}).items()]
        for path, problem in named or [("", error.message)]:
            self._add_problem(path, problem)

    def _body(self, start: str, end: str) -> dict[str, Any]:
        data = self.cleaned_data
        return {
            "candidates": [self._candidate(side) for side in self._used_sides],
            **(self._dataset() if data["dataset"] else {"filter": self._filter(start, end), "order": data["order"]}),
            "item_limit": data["item_limit"],
            "judge": data["judge"],
            "evaluators": [row.body() for row in self._used_evaluators],
            "repeats": data["repeats"] or 1,
            "baseline": data["baseline"] or None,
            "margin": DEFAULT_MARGIN if data["margin"] is None else data["margin"],
            "reuse": data["reuse"],
            "max_cost_usd": None if data["max_cost_usd"] is None else str(data["max_cost_usd"]),
        }

    def _dataset(self) -> dict[str, Any]:
        return {"dataset_id": self.cleaned_data["dataset"], "dataset_version": self.cleaned_data["dataset_version"]}

    def _filter(self, start: str, end: str) -> dict[str, Any]:
        data = self.cleaned_data
        own = {name: data[name] for name in FILTERS if data.get(name) not in ("", None)}
        filters = {**_known(self._queries.get(data["view"], "")), **_known(data["further"]), **own}
        return {**filters, "start_date": start, "end_date": end}

    @property
    def _used_sides(self) -> list[str]:
        data = self.cleaned_data
        filled = [side for side in SIDES[2:] if any(data[name] not in ("", None) for name in _names(side))]
        return ["a", *(["b"] if data["b"] != NONE else []), *filled]

    @property
    def _used_evaluators(self) -> list[EvaluatorForm]:
        return [row for row in self.evaluators if row.cleaned_data["use"]]

    def _candidate(self, side: str) -> dict[str, Any]:
        data = self.cleaned_data
        values = (None if data[side] == SERVED else data[side], data[f"{side}_model"], data[f"{side}_temperature"])
        fields = dict(zip(("version_id", "model", "temperature"), values, strict=True))
        return {name: value for name, value in fields.items() if value not in ("", None)}

    def _add_problem(self, path: str, problem: str) -> None:
        name, _, rest = path.partition(".")
        place, _, field = rest.partition(".")
        if name == "candidates":
            sides = self._used_sides
            side = sides[int(place)] if place.isdecimal() and int(place) < len(sides) else "b"
            named = f"{side}_{field}" if f"{side}_{field}" in self.fields else side
            self.add_error(named, problem)
        elif name == "evaluators" and place.isdecimal() and int(place) < len(self._used_evaluators):
            row = self._used_evaluators[int(place)]
            row.add_error(field if field in row.fields else "use", problem)
        else:
            own = {"dataset_id": "dataset"}.get(name, rest if name == "filter" else name)
            self.add_error(own if own in self.fields else None, problem if own in self.fields else _said(path, problem))


def in_words(value: Any) -> str:
    return " or ".join(map(str, value)) if isinstance(value, list) else str(value)


def initial_of(given: Given, query: QueryDict, project_id: UUID, config_id: str) -> dict[str, Any]:
    """Returns the initial values that the address gives. A filter with several values goes to the further filters.
    `version` may be repeated; the first is the baseline."""
    names = (*FILTERS, *(name for side in SIDES for name in _names(side)), "order", *_OTHERS)
    found: dict[str, Any] = {name: given[name] for name in names if given.get(name) and isinstance(given[name], str)}
    others = {name: value for name, value in _filters(given).items() if name not in found}
    dataset = query.get("dataset", "")
    versions = dict(zip(SIDES, query.getlist("version"), strict=False))
    return {
        "dataset": dataset,
        **versions,
        **({"b": NONE} if len(versions) == 1 and dataset else {}),
        "prompt_config_id": "" if dataset else config_id,
        "view": given.get("view", ""),
        "further": urlencode(others, doseq=True),
        "order": SampleOrder.NEWEST.value,
        "item_limit": given.get("item_limit") or (DEFAULT_ITEMS_OF_DATASET if dataset else DEFAULT_ITEMS),
        "judge": given.get("judge") == "on",
        "repeats": 1,
        "baseline": LABELS[0],
        "margin": DEFAULT_MARGIN,
        "reuse": given.get("reuse") != "off",
        **initial_evaluators(evaluator_rows(project_id), query.getlist("evaluator")),
        **found,
    }


def _names(side: str) -> tuple[str, str, str]:
    return side, f"{side}_model", f"{side}_temperature"


def _known(query: str) -> Given:
    return _filters(parse_parameters(query))


def _filters(given: Given) -> Given:
    known = set(RequestParameters().fields) - {"start_date", "end_date"}
    return {name: value for name, value in given.items() if name in known}


def _version_choices(project_id: UUID) -> list[tuple[str, str]]:
    rows = PromptVersion.objects.filter(config__project_id=project_id).select_related("config")
    found = rows.order_by("config__name", "-number")[:MAX_VERSIONS]
    return [(str(row.pk), _label(row)) for row in found]


def _label(row: PromptVersion) -> str:
    active = " (active)" if row.config.active_version_id == row.pk else ""
    return f"{row.config.name} version {row.number}{active}"


def _problems(detail: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _problems(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(detail, list) and any(isinstance(one, Mapping) for one in detail):
        for place, one in enumerate(detail):
            yield from _problems(one, f"{path}.{place}")
    else:
        yield path, str(detail[0] if isinstance(detail, list) else detail)


def _said(path: str, problem: str) -> str:
    return f"{path}: {problem}" if path else problem
