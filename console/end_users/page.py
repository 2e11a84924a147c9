from __future__ import annotations

from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from core.resources.page import ResourceForm, ResourcePage
from core.ui.formats import moment, money, number
from core.ui.pages import Visit
from core.ui.tables import Column, Empty, Table, page_link
from gateway.end_users.serializers import NewEndUserLimitSerializer
from gateway.end_users.services import END_USER_LIMITS
from gateway.tables.end_user import USER_CHARACTERS, EndUserLimit

_PAGE_ROWS = 100
_SHOWN_CHARACTERS = 48
_NO_LIMIT = "no limit"
_EMPTY = "Empty: no limit."


class EndUserForm(ResourceForm):
    serializer = NewEndUserLimitSerializer
    words = {
        "monthly_budget_usd": ("Budget of a month, in US dollars", f"{_EMPTY} 0: nothing may be spent."),
        "rate_limit_rpm": ("Requests per minute", _EMPTY),
        "rate_limit_tpm": ("Tokens per minute", _EMPTY),
        "max_concurrent_requests": ("Requests at the same time", _EMPTY),
    }
    once = ("user_id",)

    user_id = forms.CharField(
        max_length=USER_CHARACTERS,
        strip=False,
        label="End user",
        help_text="The x-svc-user-id or user of requests, letter by letter.",
    )


class EndUsersPage(ResourcePage):
    route = "limits/end-users/"
    name = "end_users"
    parent = "limits"
    title = "End users with limits of their own"
    template = "end_users/page.html"
    key = "limit"
    resource = END_USER_LIMITS
    form_class = EndUserForm
    fields_of_codes = {"end_user_limit_exists": "user_id"}
    about = "They take the place of the limits for every end user; where a limit is empty, the user has none."
    new, instead = "Limit an end user", "Limit another end user"
    removed = "{row}: the project's limits for every user hold again."

    def table(self, visit: Visit) -> Table:
        query = visit.request.GET
        page = Paginator(self.resource.rows(visit.project.pk), _PAGE_ROWS).get_page(query.get("p"))
        columns = [
            Column("user", "End user", lambda row: _user(visit, row)),
            Column("budget", "Budget of a month", lambda row: _or_none(row.monthly_budget_usd, money), is_numeric=True),
            Column("rpm", "Requests per minute", lambda row: _or_none(row.rate_limit_rpm, number), is_numeric=True),
            Column("tpm", "Tokens per minute", lambda row: _or_none(row.rate_limit_tpm, number), is_numeric=True),
            Column(
                "concurrent", "At the same time", lambda row: _or_none(row.max_concurrent_requests, number), "", True
            ),
            Column("changed", "Changed", lambda row: moment(row.updated_at)),
        ]
        if visit.may(self.right):
            columns.append(Column("change", "Limits", lambda row: _change(self.address(visit, row), row)))
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
    href = visit.link_if_there("user", visit.project.pk, row.user_id)
    shown = Truncator(row.user_id).chars(_SHOWN_CHARACTERS)
    return format_html('<a data-id="{}" href="{}" title="{}">{}</a>', row.user_id, href, row.user_id, shown)


def _change(href: str, row: EndUserLimit) -> SafeString:
    return format_html('<a href="{}" aria-label="Change the limits of {}">Change</a>', href, row.user_id)


def _or_none(value: Any, shown: Any) -> Any:
    return _NO_LIMIT if value is None else shown(value)
