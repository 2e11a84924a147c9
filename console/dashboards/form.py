from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.db import transaction
from django.http.response import HttpResponseBase

from analytics.dashboards import services
from analytics.figures.registry import FIGURES
from analytics.models import Chart, ChartKind, Dashboard
from analytics.models.dashboards import CHART_TITLE_CHARACTERS, DASHBOARD_NAME_CHARACTERS
from analytics.queries.measures import GROUPS
from analytics.queries.score_measures import SCORE_GROUPS
from console.dashboards.keeping import KEEP, kept_values
from console.dashboards.list import reader_of
from console.dashboards.words import filter_lines, group_label, parse_filter_lines
from core.errors import NotFoundError
from core.resources.rows import get_or_raise
from core.ui.edit import EditPage
from core.ui.pages import Visit

_FIRST_DASHBOARD = "My dashboard"
_OF_THE_DASHBOARD = ("dashboard", "dashboard_name")
_FOLDED = ("figures", "group_by", "tag", "filters")


class FiltersField(forms.CharField):
    """One filter a line, as `name=value`."""

    widget = forms.Textarea(attrs={"rows": 4})

    def clean(self, value: Any) -> dict[str, str | list[str]]:
        try:
            return parse_filter_lines(super().clean(value))
        except ValueError:
            raise forms.ValidationError("A name, an equals sign and a value are expected in each line.") from None


class ChartForm(forms.Form):
    shown_when: ClassVar[Mapping[str, tuple[str, Sequence[str]]]] = {
        "dashboard_name": ("dashboard", ("",)),
        "tag": ("group_by", ("metadata",)),
    }

    title = forms.CharField(max_length=CHART_TITLE_CHARACTERS, label="Title")
    dashboard = forms.ChoiceField(required=False, label="Dashboard")
    dashboard_name = forms.CharField(
        required=False, max_length=DASHBOARD_NAME_CHARACTERS, label="Name of the new dashboard"
    )
    kind = forms.ChoiceField(choices=ChartKind.choices, label="Shown as")
    is_wide = forms.BooleanField(required=False, label="Takes the whole width")
    figures = forms.MultipleChoiceField(
        choices=[(figure.name, figure.label) for figure in FIGURES.values()],
        widget=forms.CheckboxSelectMultiple,
        label="Figures",
        help_text="One, or in a table up to four. Lines and bars show several of one unit.",
    )
    group_by = forms.ChoiceField(
        required=False,
        choices=[("", "not split"), *((name, group_label(name)) for name in dict.fromkeys((*GROUPS, *SCORE_GROUPS)))],
        label="Split by",
    )
    tag = forms.CharField(
        required=False, max_length=64, label="Name of the metadata", help_text="If it is split by metadata."
    )
    filters = FiltersField(
        required=False,
        label="Filters",
        help_text="One a line, as in the address of Requests: model=gpt-4o, outcome=error.",
    )

    def __init__(self, dashboards: Sequence[Dashboard] | None, *given: Any, **options: Any) -> None:
        """`dashboards` are those the person may add a chart to; None if the chart is already on one."""
        super().__init__(*given, **options)
        if dashboards is None:
            for name in _OF_THE_DASHBOARD:
                del self.fields[name]
            return
        choices = [*((str(row.pk), row.name) for row in dashboards), ("", "a new one")]
        self.fields["dashboard"].choices = choices  # type: ignore[attr-defined]  # it is a ChoiceField
        if not dashboards:
            self.fields["dashboard_name"].initial = _FIRST_DASHBOARD

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if "dashboard_name" in self.fields and not values.get("dashboard") and not values.get("dashboard_name"):
            self.add_error("dashboard_name", "A new dashboard needs a name.")
        return values

    @property
    def chart(self) -> dict[str, Any]:
        return {name: value for name, value in self.cleaned_data.items() if name not in _OF_THE_DASHBOARD}

    @property
    def shown(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name not in _FOLDED]

    @property
    def folded(self) -> list[forms.BoundField]:
        return [self[name] for name in _FOLDED]

    @property
    def is_open(self) -> bool:
        """True if the choice of what the chart shows is missing or wrong."""
        return not self["figures"].value() or any(name in self.errors for name in _FOLDED)


class ChartFormPage(EditPage[Chart | None, ChartForm]):
    route = "dashboards/chart/"
    name = "chart_form"
    title = "Keep as chart"
    parent = "dashboards"
    key = "chart"

    def find(self, visit: Visit, given: str) -> Chart:
        row = get_or_raise(Chart.objects, NotFoundError("There is no such chart."), pk=UUID(given))
        services.get_dashboard(reader_of(visit), row.dashboard_id)
        return row

    def form(self, visit: Visit, record: Chart | None, data: Any = None) -> ChartForm:
        if record is not None:
            return ChartForm(None, data, initial=_initial(record))
        dashboards = _dashboards(visit)
        given = {**kept_values(visit.request.GET.get(KEEP, "")), "dashboard": visit.request.GET.get("dashboard", "")}
        if not given["dashboard"] and dashboards:
            # Most people have one, and keep the next chart where the last one went.
            given["dashboard"] = str(max(dashboards, key=lambda row: row.updated_at).pk)
        given["filters"] = _lines(given.get("filters"))
        return ChartForm(dashboards, data, initial=given)

    def save(self, visit: Visit, record: Chart | None, form: ChartForm) -> HttpResponseBase:
        saved = _save(visit, record, form)
        return visit.done(f"{saved.title} is kept.", f"{visit.link('dashboard', saved.dashboard_id)}#{saved.pk}")

    def shown(self, visit: Visit, record: Chart | None, form: ChartForm) -> Mapping[str, Any]:
        back = visit.link("dashboard", record.dashboard_id) if record else visit.link("dashboards")
        return {"back_address": back, "title": f"Change {record.title}" if record else self.title}


def _save(visit: Visit, chart: Chart | None, form: ChartForm) -> Chart:
    reader, values = reader_of(visit), form.cleaned_data
    if chart is not None:
        return services.change_chart(reader, chart.dashboard_id, chart.pk, form.chart)
    with transaction.atomic():
        if values["dashboard"]:
            dashboard_id = UUID(values["dashboard"])
        else:
            dashboard_id = services.add_dashboard(reader, name=values["dashboard_name"]).pk
        return services.add_chart(reader, dashboard_id, form.chart)


def _dashboards(visit: Visit) -> list[Dashboard]:
    reader = reader_of(visit)
    return [row for row in services.list_dashboards(reader) if services.may_change(reader, row)]


def _initial(chart: Chart) -> dict[str, Any]:
    names = ("title", "kind", "is_wide", "figures", "group_by", "tag")
    return {**{name: getattr(chart, name) for name in names}, "filters": _lines(chart.filters)}


def _lines(filters: Any) -> str:
    return "\n".join(filter_lines(filters)) if isinstance(filters, Mapping) else ""
