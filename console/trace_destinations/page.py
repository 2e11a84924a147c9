"""The page of trace destinations: what became of the export to each, and a form that makes, changes and tests them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.safestring import SafeString

from analytics.models import TraceDestination
from analytics.models.trace_destinations import DESTINATION_NAME_CHARACTERS, ENDPOINT_CHARACTERS, MAX_DESTINATIONS
from analytics.serializers.trace_destinations import NewTraceDestinationSerializer, TraceDestinationChangeSerializer
from analytics.trace_export.destinations import (
    add_destination,
    change_destination,
    get_destination,
    list_destinations,
    masked_headers,
    remove_destination,
)
from analytics.trace_export.status import status_of
from analytics.trace_export.trial import try_destination
from core.errors import ApplicationError, NotFoundError
from core.ui.formats import moment, number
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table


class HeadersField(forms.CharField):
    """Headers, one a line: the name, a colon, the value."""

    widget = forms.Textarea

    def clean(self, value: Any) -> dict[str, str]:
        headers: dict[str, str] = {}
        for line in super().clean(value).splitlines():
            name, colon, text = line.partition(":")
            if not line.strip():
                continue
            if not colon:
                # The line may be a value alone, and so a secret.
                raise forms.ValidationError("A name, a colon and a value are expected in each line.")
            headers[name.strip()] = text.strip()
        return headers


class DestinationForm(forms.Form):
    """The form of a destination. The serializers of the API decide about the values."""

    name = forms.CharField(max_length=DESTINATION_NAME_CHARACTERS, label="Name")
    endpoint = forms.CharField(
        max_length=ENDPOINT_CHARACTERS,
        label="Address",
        help_text="The collector's OTLP/HTTP address; /v1/traces is added where it is missing.",
    )
    headers = HeadersField(
        required=False,
        label="Headers",
        help_text="One a line, such as Authorization: Bearer KEY. Stored encrypted; **** keeps the stored value.",
    )
    sampling_ratio = forms.FloatField(
        initial=1.0, label="Share of traces", help_text="Above 0 up to 1; a trace leaves whole or not at all."
    )
    include_content = forms.BooleanField(required=False, label="Messages of requests and answers leave too")
    enabled = forms.BooleanField(required=False, initial=True, label="Enabled")

    def __init__(self, row: TraceDestination | None, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._row = row
        self.values: Mapping[str, Any] = {}
        if row is not None:
            self.initial = {name: getattr(row, name) for name in self.fields if name != "headers"}
            self.initial["headers"] = "\n".join(f"{name}: {mask}" for name, mask in masked_headers(row).items())

    def clean(self) -> dict[str, Any]:
        serializer_class = NewTraceDestinationSerializer if self._row is None else TraceDestinationChangeSerializer
        serializer = serializer_class(data=dict(self.cleaned_data))
        if serializer.is_valid():
            self.values = serializer.validated_data
        else:
            for field, problems in serializer.errors.items():
                if field not in self.errors:
                    self.add_error(field, [str(problem) for problem in problems])
        return self.cleaned_data


@register_page
class TraceDestinationsPage(Page):
    route = "trace-export/"
    name = "trace_destinations"
    title = "Trace export"
    template = "trace_destinations/page.html"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        row = _chosen(visit)
        return _shown(visit, row, DestinationForm(row))

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        row, action = _chosen(visit), visit.request.POST.get("action")
        if row is not None and action == "remove":
            remove_destination(visit.project.pk, row.pk)
            messages.success(visit.request, f"{row.name} was removed; what waited for it is dropped.")
            return HttpResponseRedirect(visit.link(self.name))
        if row is not None and action == "test":
            _test(visit, row)
            return HttpResponseRedirect(visit.link(self.name, destination=row.pk))
        return self._save(visit, row)

    def _save(self, visit: Visit, row: TraceDestination | None) -> HttpResponseBase:
        form = DestinationForm(row, visit.request.POST)
        if form.is_valid():
            project_id = visit.project.pk
            try:
                if row is None:
                    saved = add_destination(project_id, form.values)
                else:
                    saved = change_destination(project_id, row.pk, form.values)
            except ApplicationError as error:
                field = next(iter(error.details or {}), "").partition(".")[0]
                form.add_error(field if field in form.fields else None, error.message)
            else:
                messages.success(visit.request, f"{saved.name}: saved, and known to every exporter within seconds.")
                return HttpResponseRedirect(visit.link(self.name, destination=saved.pk))
        return self.render(visit, **_shown(visit, row, form))


def _test(visit: Visit, row: TraceDestination) -> None:
    outcome = try_destination(row)
    if outcome.ok:
        messages.success(visit.request, f"{row.name} took the span of trace {outcome.trace_id}.")
    else:
        messages.error(visit.request, f"{row.name} did not take the span. {outcome.detail}")


def _chosen(visit: Visit) -> TraceDestination | None:
    """Returns the destination that the address names, None for a new one. Raises Http404."""
    given = visit.request.GET.get("destination", "")
    try:
        return get_destination(visit.project.pk, UUID(given)) if given else None
    except (NotFoundError, ValueError):
        raise Http404("The project has no such trace destination.") from None


def _shown(visit: Visit, row: TraceDestination | None, form: DestinationForm) -> dict[str, Any]:
    rows = list(list_destinations(visit.project.pk))
    return {
        "table": _table(visit, rows),
        "destination": row,
        "form": form if row is not None or len(rows) < MAX_DESTINATIONS else None,
        "maximum": MAX_DESTINATIONS,
        "list_address": visit.link("trace_destinations"),
    }


def _table(visit: Visit, rows: list[TraceDestination]) -> Table:
    return Table(
        caption="Trace destinations of this project",
        columns=[
            Column("name", "Destination", lambda row: row.name),
            Column("endpoint", "Address", lambda row: row.endpoint),
            Column("state", "State", _state),
            Column("waiting", "Spans that wait", lambda row: number(status_of(row).waiting_spans), is_numeric=True),
            Column("sent", "Sent", lambda row: number(status_of(row).sent_spans), is_numeric=True, gives_way=True),
            Column("lost", "Dropped or rejected", _lost, is_numeric=True),
            Column("success", "Last success", lambda row: _time(status_of(row).last_success_at), gives_way=True),
            Column("error", "Last error", lambda row: status_of(row).last_error or "-"),
        ],
        rows=rows,
        key=lambda row: visit.link("trace_destinations", destination=row.pk),
        empty=Empty("No trace destination yet: the spans of requests stay in this product."),
    )


def _state(row: TraceDestination) -> SafeString:
    found = status_of(row)
    if not row.enabled:
        return status("paused")
    if found.is_failing:
        return status("failing")
    return status("works", "good") if found.last_success_at else status("nothing sent yet")


def _lost(row: TraceDestination) -> str:
    found = status_of(row)
    return number(found.dropped_spans + found.rejected_spans)


def _time(at: Any) -> Any:
    return moment(at) if at else "-"
