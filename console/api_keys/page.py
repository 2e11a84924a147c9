"""The page of API keys: what each is for, when it was used last, and what it used and cost in the range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.middleware.csrf import get_token
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html

from analytics.parameters.ranges import TimeRange
from analytics.presenters.spend import cost_by
from analytics.queries.dimensions import Dimension
from analytics.queries.spend import NEVER, key_spends
from console.api_keys.forms import ChangeKeyForm, NewKeyForm
from console.connect.box import waiting_box
from console.settings_form.wording import rates_in_words
from core.errors import ConflictError
from core.keys.services import change_key, issue_key, revoke_key, rotate_key
from core.models import ApiKey
from core.rights.scopes import GATEWAY
from core.ui.formats import NONE, age, moment, money, number
from core.ui.marks import status
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.registry import register_page
from core.ui.tables import Column, Empty, Table, page_link
from core.wire.pagination import MAXIMUM_LIMIT
from core.wire.pagination import Page as ListPage

PAGE_ROWS = 100
# The grace of a rotation that is made in the page; the API takes any.
_GRACE_SECONDS = 86_400


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def limits_in_words(project_id: UUID, keys: Sequence[ApiKey]) -> Mapping[int, str]:
    """Returns the words by the key's id. Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    now = datetime.now(UTC)
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    of_month = _spent(project_id, [key for key in keys if key.monthly_budget_usd is not None], month)
    in_all = _spent(project_id, [key for key in keys if key.total_budget_usd is not None], _EPOCH)
    return {
        key.pk: "; ".join(_words(key, of_month.get(key.pk, Decimal(0)), in_all.get(key.pk, Decimal(0)))) or "none"
        for key in keys
    }


def _spent(project_id: UUID, keys: Sequence[ApiKey], since: datetime) -> Mapping[int, Decimal]:
    return key_spends(project_id, {key.pk: (NEVER, NEVER) for key in keys}, (since, NEVER))


def _words(key: ApiKey, of_month: Decimal, in_all: Decimal) -> Iterable[str]:
    if key.monthly_budget_usd is not None:
        yield f"{money(of_month)} of {money(key.monthly_budget_usd)} this month"
    if key.total_budget_usd is not None:
        yield f"{money(in_all)} of {money(key.total_budget_usd)} in all"
    yield from rates_in_words(key)
    for patterns, what in ((key.allowed_models, "models"), (key.allowed_providers, "providers")):
        if patterns:
            yield f"{what} {', '.join(patterns)}"


@register_page
class ApiKeysPage(Page):
    route = "keys/api/"
    name = "api_keys"
    title = "API keys"
    template = "api_keys/page.html"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        key_id = visit.request.GET.get("key", "")
        row = _live_key(visit, key_id) if key_id else None
        return _shown(visit, row, NewKeyForm(visit.project.pk) if row is None else ChangeKeyForm(row))

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [Panel.of_table("keys", "Keys", lambda: _table(visit), is_wide=True)]

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        given = visit.request.POST
        if given.get("action") == "revoke":
            return self._revoke(visit, given.get("key", ""))
        if given.get("action") == "rotate":
            return self._rotate(visit, given.get("key", ""))
        if key_id := visit.request.GET.get("key"):
            return self._change(visit, key_id)
        form = NewKeyForm(visit.project.pk, given)
        if not form.is_valid():
            return self.render(visit, self.panels(visit), form=form)
        row, key = issue_key(visit.project, **form.cleaned_data)
        return self._with_secret(visit, row, key)

    def _change(self, visit: Visit, key_id: str) -> HttpResponseBase:
        with transaction.atomic():
            row = _live_key(visit, key_id, is_locked=True)
            form = ChangeKeyForm(row, visit.request.POST)
            is_valid = form.is_valid()
            if is_valid:
                change_key(row, form.cleaned_data)
        if not is_valid:
            return self.render(visit, self.panels(visit), **_shown(visit, row, form))
        messages.success(visit.request, f"The key {row.name} is changed; gateways know it within a second.")
        return HttpResponseRedirect(visit.link(self.name))

    def _rotate(self, visit: Visit, key_id: str) -> HttpResponseBase:
        row = _key_of(visit, key_id)
        try:
            if row is None:
                raise ConflictError("The project has no such key.")
            secret = rotate_key(row, grace_seconds=_GRACE_SECONDS)
        except ConflictError as error:
            messages.error(visit.request, error.message)
            return HttpResponseRedirect(visit.link(self.name))
        return self._with_secret(visit, row, secret, is_rotated=True)

    def _with_secret(self, visit: Visit, row: ApiKey, secret: str, *, is_rotated: bool = False) -> HttpResponseBase:
        """Returns the one response that has the secret, which is nowhere else, so that it cannot be shown after a
        redirect."""
        box = waiting_box(visit, key=row, secret=secret) if GATEWAY in row.scopes and not is_rotated else None
        shown = {"made": row, "key": secret, "is_rotated": is_rotated, "box": box}
        return self.render(visit, self.panels(visit), form=NewKeyForm(visit.project.pk), **shown)

    def _revoke(self, visit: Visit, key_id: str) -> HttpResponseBase:
        row = _key_of(visit, key_id)
        if row is None:
            messages.error(visit.request, "The project has no such key.")
        else:
            revoke_key(row)
            messages.success(visit.request, f"{row.name} is revoked; gateways forget it within a second.")
        return HttpResponseRedirect(visit.link(self.name))


def _key_of(visit: Visit, key_id: str, *, is_locked: bool = False) -> ApiKey | None:
    rows = ApiKey.objects.for_project(visit.project.pk)
    if is_locked:
        rows = rows.select_for_update()
    return rows.filter(pk=int(key_id)).first() if key_id.isdecimal() else None


def _live_key(visit: Visit, key_id: str, *, is_locked: bool = False) -> ApiKey:
    """Returns the key that the address names. Raises Http404 also for one that is revoked."""
    row = _key_of(visit, key_id, is_locked=is_locked)
    if row is None or row.revoked_at is not None:
        raise Http404("The project has no such key, or it is revoked.")
    return row


def _shown(visit: Visit, row: ApiKey | None, form: NewKeyForm) -> dict[str, Any]:
    return {
        "changing": row,
        "form": form,
        "list_address": visit.link("api_keys"),
        "connect_address": visit.link("connect"),
    }


def _table(visit: Visit) -> Table:
    """Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    query = visit.request.GET
    rows = ApiKey.objects.for_project(visit.project.pk).select_related("team").order_by("-pk")
    cursor = query.get("cursor", "")
    if cursor.isdecimal():
        rows = rows.filter(pk__lt=int(cursor))
    page = list(rows[: PAGE_ROWS + 1])
    used, limits = _use(visit), limits_in_words(visit.project.pk, page[:PAGE_ROWS])
    return Table(
        caption=f"API keys, with their requests and cost: {visit.period.label.lower()}",
        columns=[
            Column("name", "Name", lambda row: row.name),
            Column("prefix", "Key", lambda row: format_html("<code>{}…</code>", row.prefix)),
            Column("scopes", "Scopes", lambda row: ", ".join(row.scopes)),
            Column("state", "State", _state),
            Column("made", "Made", lambda row: moment(row.created_at), gives_way=True),
            Column("used", "Last use", lambda row: f"{age(row.last_used_at)} ago" if row.last_used_at else "never"),
            Column("requests", "Requests", lambda row: _requests(visit, row, used), is_numeric=True),
            Column("cost", "Cost", lambda row: money(_figure(used, row, "total_cost_usd")), is_numeric=True),
            Column("limits", "Limits", lambda row: limits[row.pk], gives_way=True),
            Column("team", "Team", lambda row: _team(visit, row), gives_way=True),
            Column("change", "Change", lambda row: _change_forms(visit, row)),
        ],
        rows=page[:PAGE_ROWS],
        query=query,
        empty=Empty("This project has no API key yet: make the first one below."),
        next_url=page_link(query, cursor=str(page[PAGE_ROWS - 1].pk)) if len(page) > PAGE_ROWS else "",
        previous_url=page_link(query, cursor="") if cursor else "",
    )


def _use(visit: Visit) -> Mapping[str, Mapping[str, Any]]:
    """Returns the figures of the range by the id of the key, those of the keys that cost most."""
    time_range = TimeRange(visit.period.start, visit.period.end)
    found = cost_by(visit.project.pk, Dimension.API_KEY, time_range, ListPage(MAXIMUM_LIMIT, 0))
    return {entry["key"]: entry for entry in found.results}


def _figure(used: Mapping[str, Mapping[str, Any]], row: ApiKey, name: str) -> Any:
    return used.get(str(row.pk), {}).get(name, 0)


def _requests(visit: Visit, row: ApiKey, used: Mapping[str, Mapping[str, Any]]) -> Any:
    count = _figure(used, row, "request_count")
    href = visit.link_if_there("analytics_requests_changelist", api_key_id=row.pk) if count else ""
    return format_html('<a href="{}">{}</a>', href, number(count)) if href else number(count)


def _state(row: ApiKey) -> Any:
    if row.revoked_at is not None:
        return format_html("{} {}", status("revoked", "bad"), moment(row.revoked_at))
    if row.expires_at is None:
        return status("active", "good")
    if row.expires_at <= timezone.now():
        return format_html("{} {}", status("expired", "warn"), moment(row.expires_at))
    return format_html("{} until {}", status("active", "good"), moment(row.expires_at))


def _team(visit: Visit, row: ApiKey) -> Any:
    return (
        NONE
        if row.team is None
        else format_html('<a href="{}">{}</a>', visit.link("teams", team=row.team_id), row.team.name)
    )


def _change_forms(visit: Visit, row: ApiKey) -> Any:
    if row.revoked_at is not None:
        return ""
    address = visit.link("api_keys", key=row.pk)
    context = {"row": row, "address": address, "csrf_token": get_token(visit.request)}
    return render_to_string("api_keys/revoke.html", context)
