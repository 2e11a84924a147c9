"""The page of the channels that alerts are sent by, with a form that makes, changes and removes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.validators import validate_email
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase

from core.errors import ApplicationError, NotFoundError
from core.ui.formats import moment
from core.ui.forms import refuse
from core.ui.pages import Page, Visit
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table
from gateway.alerts.channels import (
    add_channel,
    change_channel,
    get_channel,
    list_channels,
    masked_url,
    remove_channel,
)
from gateway.tables.figure_alert import CHANNEL_NAME_CHARACTERS, AlertChannel


class EmailsField(forms.CharField):
    """Addresses of e-mail, one a line."""

    widget = forms.Textarea(attrs={"rows": 2})

    def clean(self, value: Any) -> list[str]:
        emails = [line.strip() for line in super().clean(value).splitlines() if line.strip()]
        for email in emails:
            validate_email(email)
        return emails


class ChannelForm(forms.Form):
    name = forms.CharField(max_length=CHANNEL_NAME_CHARACTERS, label="Name")
    kind = forms.ChoiceField(choices=AlertChannel.Kind.choices, label="Kind")
    url = forms.CharField(
        required=False,
        max_length=2000,
        label="Address of the webhook",
        help_text="Stored encrypted; **** keeps what is stored. For Discord add /slack.",
    )
    emails = EmailsField(required=False, label="Addresses of e-mail", help_text="One a line.")
    receives_project_alerts = forms.BooleanField(
        required=False, label="Also alerts on the month's budget and on rollouts at 100 %"
    )

    def __init__(self, row: AlertChannel | None, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        if row is not None:
            del self.fields["kind"]
            del self.fields["url" if row.kind == AlertChannel.Kind.EMAIL else "emails"]
            self.initial = {
                "name": row.name,
                "url": masked_url(row),
                "emails": "\n".join(row.emails),
                "receives_project_alerts": row.receives_project_alerts,
            }


@register_page
class AlertChannelsPage(Page):
    route = "alerts/channels/"
    name = "alert_channels"
    title = "Channels of alerts"
    template = "alerts/channels.html"
    parent = "alerts"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        row = _chosen(visit)
        return _shown(visit, row, ChannelForm(row))

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        row = _chosen(visit)
        if row is not None and visit.request.POST.get("action") == "remove":
            remove_channel(visit.project.pk, row.pk, actor=visit.actor)
            messages.success(visit.request, f"{row.name} was removed; its alerts keep their other channels.")
            return HttpResponseRedirect(visit.link(self.name))
        form = ChannelForm(row, visit.request.POST)
        saved = _save(visit, row, form) if form.is_valid() else None
        if saved is None:
            return self.render(visit, **_shown(visit, row, form))
        messages.success(visit.request, f"{saved.name}: saved. Choose it in an alert, and send a test message there.")
        return HttpResponseRedirect(visit.link(self.name))


def _save(visit: Visit, row: AlertChannel | None, form: ChannelForm) -> AlertChannel | None:
    try:
        if row is None:
            return add_channel(visit.project.pk, form.cleaned_data, actor=visit.actor)
        return change_channel(visit.project.pk, row.pk, form.cleaned_data, actor=visit.actor)
    except ApplicationError as error:
        refuse(form, error)
    return None


def _chosen(visit: Visit) -> AlertChannel | None:
    """Returns the channel that the address names, None for a new one. Raises Http404."""
    given = visit.request.GET.get("channel", "")
    try:
        return get_channel(visit.project.pk, UUID(given)) if given else None
    except (NotFoundError, ValueError):
        raise Http404("The project has no such alert channel.") from None


def _shown(visit: Visit, row: AlertChannel | None, form: ChannelForm) -> dict[str, Any]:
    return {
        "table": _table(visit),
        "channel": row,
        "form": form,
        "list_address": visit.link("alert_channels"),
        "secrets_address": visit.link_if_there("gateway_alertsecret_changelist"),
    }


def _table(visit: Visit) -> Table:
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
        rows=list(list_channels(visit.project.pk)),
        key=lambda row: visit.link("alert_channels", channel=row.pk),
        empty=Empty("No channel yet: alerts are shown in these pages alone."),
    )
