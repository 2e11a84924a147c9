from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.validators import validate_email

from core.resources.page import ResourceForm, ResourcePage
from core.ui.formats import moment
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Table
from gateway.alerts.channels import CHANNELS, masked_url
from gateway.figure_alerts.serializers import NewAlertChannelSerializer
from gateway.tables.figure_alert import AlertChannel


class EmailsField(forms.CharField):
    widget = forms.Textarea(attrs={"rows": 2})

    def clean(self, value: Any) -> list[str]:
        emails = [line.strip() for line in super().clean(value).splitlines() if line.strip()]
        for email in emails:
            validate_email(email)
        return emails


class ChannelForm(ResourceForm):
    serializer = NewAlertChannelSerializer
    words = {
        "name": "Name",
        "receives_project_alerts": "Also alerts on the month's budget and on rollouts at 100 %",
    }
    field_order = ("name", "kind", "url", "emails")
    once = ("kind",)
    shown_when = {
        "url": ("kind", [value for value in AlertChannel.Kind.values if value != AlertChannel.Kind.EMAIL]),
        "emails": ("kind", [AlertChannel.Kind.EMAIL.value]),
    }

    kind = forms.ChoiceField(choices=AlertChannel.Kind.choices, label="Kind")
    url = forms.CharField(
        required=False,
        max_length=2000,
        label="Address of the webhook",
        help_text="Stored encrypted; **** keeps what is stored. For Discord add /slack.",
    )
    emails = EmailsField(required=False, label="Addresses of e-mail", help_text="One a line.")

    def __init__(self, record: AlertChannel | None = None, data: Any = None) -> None:
        super().__init__(record, data)
        if record is not None:
            del self.fields["url" if record.kind == AlertChannel.Kind.EMAIL else "emails"]

    def initial_of(self, record: AlertChannel) -> dict[str, Any]:
        shown = {"url": masked_url(record), "emails": "\n".join(record.emails)}
        return {name: shown.get(name, getattr(record, name, None)) for name in self.fields}


class AlertChannelsPage(ResourcePage):
    route = "alerts/channels/"
    name = "alert_channels"
    title = "Channels of alerts"
    parent = "alerts"
    key = "channel"
    resource = CHANNELS
    form_class = ChannelForm
    new = "New channel"
    submit = "Save channel"
    instead = "New channel instead"
    saved = "{row}: saved. Choose it in an alert, and send a test message there."
    removal = "Its alerts keep their other channels; messages that wait for it are given up."
    removed = "{row} was removed; its alerts keep their other channels."

    def shown(self, visit: Visit, record: AlertChannel | None, form: ResourceForm) -> Mapping[str, Any]:
        return {"secrets_address": visit.link_if_there("gateway_alertsecret_changelist")}

    def table(self, visit: Visit) -> Table:
        return Table(
            caption="Channels of this project",
            columns=[
                Column("name", "Channel", lambda row: row.name),
                Column("kind", "Kind", lambda row: row.get_kind_display()),
                Column("where", "Where", lambda row: masked_url(row) or ", ".join(row.emails)),
                Column("alerts", "Alerts", lambda row: row.alerts.count(), is_numeric=True),
                Column("project", "Budget and rollouts", lambda row: "yes" if row.receives_project_alerts else "no"),
                Column("changed", "Changed", lambda row: moment(row.updated_at)),
            ],
            rows=list(CHANNELS.rows(visit.project.pk)),
            key=lambda row: self.address(visit, row),
            empty=Empty("No channel yet: alerts are shown in these pages alone."),
        )
