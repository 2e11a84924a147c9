"""The page of end users with limits of their own, and a form that makes, changes and removes these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from core.errors import ConflictError
from core.roles import Right
from core.ui.formats import moment, money, number
from core.ui.pages import Page, Visit
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table, page_link
from core.wire.fields import MONEY_DIGITS, MONEY_PLACES
from gateway.end_users.serializers import EndUserChangeSerializer, NewEndUserLimitSerializer
from gateway.end_users.services import change_limit, create_limit, list_limits
from gateway.tables.end_user import USER_CHARACTERS, EndUserLimit

_PAGE_ROWS = 100
_SHOWN_CHARACTERS = 48
# A number of more digits may be larger than any that the databases take.
_ID_DIGITS = 18
_NO_LIMIT = "no limit"
_EMPTY = "Empty: no limit."


class EndUserForm(forms.Form):
    """The form of an end user's limits; the user of limits that are there does not change. The serializers of the API
    decide about the values."""

    user_id = forms.CharField(
        max_length=USER_CHARACTERS,
        strip=False,
        label="End user",
        help_text="The x-svc-user-id or user of requests, letter by letter.",
    )
    monthly_budget_usd = forms.DecimalField(
        required=False,
        max_digits=MONEY_DIGITS,
        decimal_places=MONEY_PLACES,
        label="Budget of a month, in US dollars",
        help_text=f"{_EMPTY} 0: nothing may be spent.",
    )
    rate_limit_rpm = forms.IntegerField(required=False, label="Requests per minute", help_text=_EMPTY)
    rate_limit_tpm = forms.IntegerField(required=False, label="Tokens per minute", help_text=_EMPTY)
    max_concurrent_requests = forms.IntegerField(required=False, label="Requests at the same time", help_text=_EMPTY)

    def __init__(self, row: EndUserLimit | None, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._row = row
        self.values: Mapping[str, Any] = {}
        if row is not None:
            del self.fields["user_id"]
            self.initial = {name: getattr(row, name) for name in self.fields}
            budget = row.monthly_budget_usd
            # The column has ten places, which would all be shown.
            self.initial["monthly_budget_usd"] = None if budget is None else f"{budget.normalize():f}"

    def clean(self) -> dict[str, Any]:
        data = dict(self.cleaned_data)
        if data.get("monthly_budget_usd") is not None:
            data["monthly_budget_usd"] = float(data["monthly_budget_usd"])
        serializer = (NewEndUserLimitSerializer if self._row is None else EndUserChangeSerializer)(data=data)
        if serializer.is_valid():
            self.values = serializer.validated_data
        else:
            for field, problems in serializer.errors.items():
                if field not in self.errors:
                    self.add_error(field, [str(problem) for problem in problems])
        return self.cleaned_data


@register_page
class EndUsersPage(Page):
    route = "limits/end-users/"
    name = "end_users"
    parent = "limits"
    title = "End users with limits of their own"
    template = "end_users/page.html"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        row = _chosen(visit)
        return _shown(visit, row, EndUserForm(row))

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        visit.require(Right.ADMINISTER)
        row = _chosen(visit)
        if visit.request.POST.get("action") == "remove" and row is not None:
            row.delete()
            messages.success(visit.request, f"{row.user_id}: the project's limits for every user hold again.")
            return HttpResponseRedirect(visit.link(self.name))
        return self._save(visit, row)

    def _save(self, visit: Visit, row: EndUserLimit | None) -> HttpResponseBase:
        form = EndUserForm(row, visit.request.POST)
        if form.is_valid():
            try:
                project_id = visit.project.pk
                saved = create_limit(project_id, form.values) if row is None else change_limit(row, form.values)
            except ConflictError as error:
                form.add_error("user_id" if error.code == "end_user_limit_exists" else None, error.message)
            else:
                messages.success(visit.request, f"{saved.user_id}: saved, and known to every worker within a second.")
                return HttpResponseRedirect(visit.link(self.name))
        return self.render(visit, **_shown(visit, row, form))


def _chosen(visit: Visit) -> EndUserLimit | None:
    """Returns the limits that the address names by their id, None for new ones. Raises Http404."""
    limit_id = visit.request.GET.get("limit", "")
    if not limit_id:
        return None
    row = None
    if limit_id.isascii() and limit_id.isdecimal() and len(limit_id) <= _ID_DIGITS:
        row = list_limits(visit.project.pk).filter(pk=int(limit_id)).first()
    if row is None:
        raise Http404("The project has no limits of an end user with this id.")
    return row


def _shown(visit: Visit, row: EndUserLimit | None, form: EndUserForm) -> dict[str, Any]:
    may_change = visit.may(Right.ADMINISTER)
    return {
        "table": _table(visit, may_change=may_change),
        "limit": row,
        "form": form if may_change else None,
        "list_address": visit.link("end_users"),
    }


def _table(visit: Visit, *, may_change: bool) -> Table:
    page = Paginator(list_limits(visit.project.pk), _PAGE_ROWS).get_page(visit.request.GET.get("p"))
    query = visit.request.GET
    columns = [
        Column("user", "End user", lambda row: _user(visit, row)),
        Column("budget", "Budget of a month", lambda row: _or_none(row.monthly_budget_usd, money), is_numeric=True),
        Column("rpm", "Requests per minute", lambda row: _or_none(row.rate_limit_rpm, number), is_numeric=True),
        Column("tpm", "Tokens per minute", lambda row: _or_none(row.rate_limit_tpm, number), is_numeric=True),
        Column("concurrent", "At the same time", lambda row: _or_none(row.max_concurrent_requests, number), "", True),
        Column("changed", "Changed", lambda row: moment(row.updated_at)),
    ]
    if may_change:
        columns.append(Column("change", "Limits", lambda row: _change(visit, row)))
    return Table(
        caption="End users with limits of their own, by name",
        columns=columns,
        rows=list(page),
        empty=Empty("No end user has limits of its own: the limits for every end user hold for all."),
        next_url=page_link(query, p=str(page.number + 1), limit="") if page.has_next() else "",
        previous_url=page_link(query, p=str(page.number - 1), limit="") if page.has_previous() else "",
        count=page.paginator.count,
    )


def _user(visit: Visit, row: EndUserLimit) -> SafeString:
    href = visit.link_if_there("analytics_requests_changelist", user_id=row.user_id)
    shown = Truncator(row.user_id).chars(_SHOWN_CHARACTERS)
    return format_html('<a data-id="{}" href="{}" title="{}">{}</a>', row.user_id, href, row.user_id, shown)


def _change(visit: Visit, row: EndUserLimit) -> SafeString:
    href = visit.link("end_users", limit=row.pk)
    return format_html('<a href="{}" aria-label="Change the limits of {}">Change</a>', href, row.user_id)


def _or_none(value: Any, shown: Any) -> Any:
    return _NO_LIMIT if value is None else shown(value)
