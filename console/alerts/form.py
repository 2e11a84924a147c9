from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http.response import HttpResponseBase

from analytics.figures.filters import Filters, values_of
from analytics.figures.registry import FIGURES, FigureUnit
from console.dashboards.alerting import filters_of_address
from core.models import ApiKey
from core.ui.edit import EditPage
from core.ui.forms import SerializerForm
from core.ui.pages import Visit
from gateway.alerts.channels import CHANNELS
from gateway.figure_alerts.serializers import NewAlertSerializer
from gateway.figure_alerts.services import ALERTS
from gateway.figure_alerts.words import CHANGES, window_text
from gateway.tables.figure_alert import ALERT_NAME_CHARACTERS, FigureAlert
from integrations.registry import provider_named, provider_title
from prompts.models import PromptConfig

_WINDOWS = (5, 15, 30, 60, 6 * 60, 24 * 60, 7 * 24 * 60)
_REPEATS = (30, 60, 4 * 60, 24 * 60)
_CONDITIONS = (
    (FigureAlert.Condition.ABOVE.value, "is above"),
    (FigureAlert.Condition.BELOW.value, "is below"),
    (FigureAlert.Condition.RISES.value, "is above last week, by %"),
    (FigureAlert.Condition.FALLS.value, "is below last week, by %"),
)
# Filters that have a field of their own; the others are written one a line.
_PLAIN = ("name", "condition", "window_minutes", "min_requests", "repeat_minutes")
_CHOSEN = ("model", "provider", "prompt_config_id", "api_key_id")


class FiltersField(forms.CharField):
    """One filter a line, as `name=value`; a repeated name gets several values."""

    widget = forms.Textarea(attrs={"rows": 2})

    def clean(self, value: Any) -> dict[str, list[str]]:
        filters: dict[str, list[str]] = {}
        for line in super().clean(value).splitlines():
            name, equals, text = line.partition("=")
            if not line.strip():
                continue
            if not equals:
                raise forms.ValidationError("A name, an equals sign and a value are expected in each line.")
            filters.setdefault(name.strip(), []).append(text.strip())
        return filters


class AlertForm(SerializerForm[NewAlertSerializer]):
    """Shares are entered in percent. The API's serializer validates."""

    serializer = NewAlertSerializer
    words = {"name": "Name"}
    field_order = ("name",)

    figure = forms.ChoiceField(choices=[(figure.name, figure.label) for figure in FIGURES.values()], label="Figure")
    condition = forms.ChoiceField(choices=_CONDITIONS, label="Fires when it")
    threshold = forms.FloatField(
        label="Threshold", help_text="In percent for shares, milliseconds for latencies, US dollars for costs."
    )
    window_minutes = forms.TypedChoiceField(coerce=int, label="Over the last")
    min_requests = forms.IntegerField(
        min_value=0, initial=0, label="At least so many requests", help_text="With fewer it does not fire."
    )
    channels = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, label="Send to", help_text="Without one it is shown here."
    )
    repeat_minutes = forms.TypedChoiceField(
        coerce=int, empty_value=None, required=False, label="While it fires, send again"
    )
    model = forms.CharField(required=False, label="Of the model", help_text="Empty for all.")
    provider = forms.CharField(required=False, label="Of the provider", help_text="Empty for all.")
    prompt_config_id = forms.ChoiceField(required=False, label="Of the prompt")
    api_key_id = forms.ChoiceField(required=False, label="Of the API key")
    filters = FiltersField(
        required=False, label="Other filters", help_text="One a line, as a list of requests has them: user_id=ann."
    )

    def __init__(self, visit: Visit, row: FigureAlert | None, data: Any = None) -> None:
        super().__init__(row, data, initial={} if row is not None else _initial_of_address(visit))
        project_id = visit.project.pk
        self._choices("window_minutes", _WINDOWS, row.window_minutes if row else None, "")
        self._choices("repeat_minutes", _REPEATS, row.repeat_minutes if row else None, "every ")
        self._set_choices("repeat_minutes", [("", "never"), *self._choices_of("repeat_minutes")])
        prompts = PromptConfig.objects.for_project(project_id).order_by("name").values_list("pk", "name")
        keys = ApiKey.objects.for_project(project_id).filter(revoked_at=None).order_by("name")
        self._set_choices("prompt_config_id", [("", "all"), *((str(pk), name) for pk, name in prompts)])
        self._set_choices("api_key_id", [("", "all"), *((str(key.pk), str(key)) for key in keys)])
        channels = CHANNELS.rows(project_id)
        self._set_choices("channels", [(str(one.pk), f"{one.name} ({one.get_kind_display()})") for one in channels])
        if not channels:
            del self.fields["channels"]

    def body(self) -> dict[str, Any]:
        given = self.cleaned_data
        chosen = {name: given[name] for name in _CHOSEN if given[name]}
        if "provider" in chosen:
            chosen["provider"] = provider_named(chosen["provider"]) or chosen["provider"]
        query = {"figure": given["figure"], "filters": {**given["filters"], **chosen}}
        return {
            **{name: given[name] for name in _PLAIN},
            "query": query,
            "channels": given.get("channels", []),
            "threshold": given["threshold"] / _percent_of(query, given["condition"]),
        }

    def field_of(self, path: str) -> str:
        last = path.rpartition(".")[2]
        if path.startswith("channels"):
            return "channels"
        return "filters" if path.startswith("query.filters") and last not in self.fields else last

    def initial_of(self, record: FigureAlert) -> dict[str, Any]:
        # 0.07 * 100 is not 7 in binary.
        threshold = round(record.threshold * _percent_of(record.query, record.condition), 10)
        return {
            **{name: getattr(record, name) for name in _PLAIN},
            "figure": record.query.get("figure", ""),
            "threshold": threshold,
            "channels": [str(one.pk) for one in record.channels.all()],
            **_initial_filters(record.query.get("filters") or {}),
        }

    def _choices(self, field: str, minutes: tuple[int, ...], present: int | None, before: str) -> None:
        offered = sorted({*minutes, *([present] if present else [])})
        self._set_choices(field, [(str(one), f"{before}{window_text(one)}") for one in offered])

    def _set_choices(self, field: str, choices: list[tuple[str, str]]) -> None:
        found: Any = self.fields[field]
        found.choices = choices

    def _choices_of(self, field: str) -> list[tuple[str, str]]:
        found: Any = self.fields[field]
        return list(found.choices)


def _initial_of_address(visit: Visit) -> dict[str, Any]:
    given = visit.request.GET
    name = given.get("figure", "")
    figure = FIGURES.get(name)
    return {
        "name": given.get("title", "")[:ALERT_NAME_CHARACTERS] or (figure.label if figure else ""),
        "figure": name or "error_rate",
        "condition": FigureAlert.Condition.ABOVE.value,
        "window_minutes": 15,
        "min_requests": 0,
        **_initial_filters(filters_of_address(given.get("filters", ""))),
    }


def _initial_filters(filters: Filters) -> dict[str, Any]:
    chosen = {name: value for name, value in filters.items() if name in _CHOSEN and isinstance(value, str)}
    if "provider" in chosen:
        chosen["provider"] = provider_title(chosen["provider"])
    lines = [f"{name}={value}" for name in filters if name not in chosen for value in values_of(filters, name)]
    return {**chosen, "filters": "\n".join(lines)}


def _percent_of(query: Mapping[str, Any], condition: str) -> float:
    """Returns 100 if the threshold is a share, which people enter in percent; else 1."""
    figure = FIGURES.get(str(query.get("figure", "")))
    return 100.0 if figure and figure.unit is FigureUnit.SHARE and condition not in CHANGES else 1.0


class AlertFormPage(EditPage[None, AlertForm]):
    route = "alerts/new/"
    name = "alert_form"
    title = "New alert"
    parent = "alerts"

    def form(self, visit: Visit, record: None, data: Any = None) -> AlertForm:
        return AlertForm(visit, None, data)

    def save(self, visit: Visit, record: None, form: AlertForm) -> HttpResponseBase:
        row = ALERTS.create(visit.project.pk, form.values, actor=visit.actor)
        return visit.done(f"{row.name}: saved, and looked at within half a minute.", visit.link("alert", row.pk))

    def shown(self, visit: Visit, record: None, form: AlertForm) -> Mapping[str, Any]:
        return {"channels_address": visit.link_if_there("alert_channels")}
