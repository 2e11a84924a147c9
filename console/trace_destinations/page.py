from __future__ import annotations

from typing import Any

from django import forms
from django.http.response import HttpResponseBase
from django.utils.safestring import SafeString

from analytics.models import TraceDestination
from analytics.models.trace_destinations import MAX_DESTINATIONS
from analytics.serializers.trace_destinations import NewTraceDestinationSerializer
from analytics.trace_export.destinations import (
    DESTINATIONS,
    masked_headers,
    status_of,
)
from analytics.trace_export.trial import try_destination
from core.errors import ApplicationError
from core.resources.page import ResourceForm, ResourcePage
from core.ui.formats import moment, number
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Table


class HeadersField(forms.CharField):
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


class DestinationForm(ResourceForm):
    serializer = NewTraceDestinationSerializer
    words = {
        "name": "Name",
        "endpoint": ("Address", "The collector's OTLP/HTTP address; /v1/traces is added where it is missing."),
        "include_content": "Messages of requests and answers leave too",
    }
    field_order = ("name", "endpoint", "headers", "sampling_ratio", "include_content", "enabled")

    headers = HeadersField(
        required=False,
        label="Headers",
        help_text="One a line, such as Authorization: Bearer KEY. Stored encrypted; **** keeps the stored value.",
    )
    sampling_ratio = forms.FloatField(
        initial=1.0, label="Share of traces", help_text="Above 0 up to 1; a trace leaves whole or not at all."
    )
    enabled = forms.BooleanField(required=False, initial=True, label="Enabled")

    def initial_of(self, record: TraceDestination) -> dict[str, Any]:
        headers = "\n".join(f"{name}: {mask}" for name, mask in masked_headers(record).items())
        return {name: getattr(record, name, headers) for name in self.fields}


class TraceDestinationsPage(ResourcePage):
    route = "trace-export/"
    name = "trace_destinations"
    title = "Trace export"
    has_range = False
    template = "trace_destinations/page.html"
    key = "destination"
    resource = DESTINATIONS
    form_class = DestinationForm
    about = f"The spans of this project's requests, sent on to up to {MAX_DESTINATIONS} OpenTelemetry collectors."
    new, instead = "New destination", "New destination instead"
    saved = "{row}: saved, and known to every exporter within seconds."
    removal, removed = "What waits for the collector is dropped.", "{row} was removed; what waited for it is dropped."

    def shown(self, visit: Visit, record: TraceDestination | None, form: ResourceForm) -> dict[str, Any]:
        is_full = self.resource.rows(visit.project.pk).count() >= MAX_DESTINATIONS
        return {"form": None} if record is None and is_full else {}

    def address_after(self, visit: Visit, row: TraceDestination) -> str:
        return self.address(visit, row)

    def refuse(self, form: ResourceForm, error: ApplicationError) -> None:
        path = next(iter(error.details or {}), "")
        if path.startswith("headers."):
            # The message begins with the path, which names the header.
            form.add_error("headers", error.message)
        else:
            super().refuse(form, error)

    def do_test(self, visit: Visit, record: TraceDestination) -> HttpResponseBase:
        outcome, href = try_destination(record), self.address(visit, record)
        if outcome.ok:
            return visit.done(f"{record.name} took the span of trace {outcome.trace_id}.", href)
        return visit.failed(f"{record.name} did not take the span. {outcome.detail}", href)

    def table(self, visit: Visit) -> Table:
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
            rows=list(self.resource.rows(visit.project.pk)),
            key=lambda row: self.address(visit, row),
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
