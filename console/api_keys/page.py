from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
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
from core.errors import NotFoundError
from core.keys.services import change_key, issue_key, revoke_key, rotate_key
from core.models import ApiKey
from core.rights.scopes import GATEWAY
from core.ui.edit import EditPage
from core.ui.formats import NONE, age, moment, money, number
from core.ui.marks import status
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.tables import Column, Empty, Table, newest_first
from core.wire.pagination import MAXIMUM_LIMIT
from core.wire.pagination import Page as ListPage

PAGE_ROWS = 100
# The grace of a rotation that is made in the page; the API takes any.
_GRACE_SECONDS = 86_400


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def limits_in_words(project_id: UUID, keys: Sequence[ApiKey]) -> Mapping[int, str]:
    """Returns the words by key id. Raises AnalyticsUnavailableError and AnalyticsLimitError."""
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


class ApiKeysPage(EditPage[ApiKey | None, NewKeyForm]):
    route = "keys/api/"
    name = "api_keys"
    title = "API keys"
    saves = ("", "make", "change")

    def record(self, visit: Visit, **route: Any) -> ApiKey | None:
        # The buttons of the table name their key, the form has that of the address.
        given, address = visit.request.POST.get("key"), visit.request.GET.get("key", "")
        row = _key_of(visit, address if given is None else given)
        if given is None and address and (row is None or row.revoked_at is not None):
            raise NotFoundError("The project has no such key, or it is revoked.")
        return row

    def form(self, visit: Visit, record: ApiKey | None, data: Any = None) -> NewKeyForm:
        return NewKeyForm(visit.project.pk, data) if record is None else ChangeKeyForm(record, data)

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return [Panel.of_table("keys", "Keys", lambda: _table(visit), is_wide=True)]

    def save(self, visit: Visit, record: ApiKey | None, form: NewKeyForm) -> HttpResponseBase:
        if record is None:
            row, key = issue_key(visit.project, **form.cleaned_data)
            return self._with_secret(visit, row, key)
        with transaction.atomic():
            change_key(ApiKey.objects.select_for_update().get(pk=record.pk), form.cleaned_data)
        said = f"The key {form.cleaned_data.get('name', record.name)} is changed; gateways know it within a second."
        return visit.done(said, visit.link(self.name))

    def shown(self, visit: Visit, record: ApiKey | None, form: NewKeyForm) -> Mapping[str, Any]:
        return {"connect_address": visit.link("connect")}

    def do_rotate(self, visit: Visit, record: ApiKey | None) -> HttpResponseBase:
        row = _existing(record)
        secret = rotate_key(row, grace_seconds=_GRACE_SECONDS)
        return self._with_secret(visit, row, secret, is_rotated=True)

    def do_revoke(self, visit: Visit, record: ApiKey | None) -> HttpResponseBase:
        row = _existing(record)
        revoke_key(row)
        return visit.done(f"{row.name} is revoked; gateways forget it within a second.", visit.link(self.name))

    def _with_secret(self, visit: Visit, row: ApiKey, secret: str, *, is_rotated: bool = False) -> HttpResponseBase:
        """Answers without a redirect: this response is the only place that ever has the secret."""
        box = waiting_box(visit, key=row, secret=secret) if GATEWAY in row.scopes and not is_rotated else None
        shown = {"made": row, "key": secret, "is_rotated": is_rotated, "box": box}
        return self.render(visit, self.panels(visit), form=NewKeyForm(visit.project.pk), **shown)


def _existing(row: ApiKey | None) -> ApiKey:
    if row is None:
        raise NotFoundError("The project has no such key.")
    return row


def _key_of(visit: Visit, key_id: str) -> ApiKey | None:
    rows = ApiKey.objects.for_project(visit.project.pk)
    return rows.filter(pk=int(key_id)).first() if key_id.isdecimal() else None


def _table(visit: Visit) -> Table:
    rows = ApiKey.objects.for_project(visit.project.pk).select_related("team").order_by("-pk")
    page, links = newest_first(rows, visit.request.GET, PAGE_ROWS)
    used, limits = _use(visit), limits_in_words(visit.project.pk, page)
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
        rows=page,
        empty=Empty("This project has no API key yet: make the first one below."),
        **links,
    )


def _use(visit: Visit) -> Mapping[str, Mapping[str, Any]]:
    time_range = TimeRange(visit.period.start, visit.period.end)
    found = cost_by(visit.project.pk, time_range, ListPage(MAXIMUM_LIMIT, 0), group_by=Dimension.API_KEY)
    return {entry["key"]: entry for entry in found.results}


def _figure(used: Mapping[str, Mapping[str, Any]], row: ApiKey, name: str) -> Any:
    return used.get(str(row.pk), {}).get(name, 0)


def _requests(visit: Visit, row: ApiKey, used: Mapping[str, Mapping[str, Any]]) -> Any:
    count = _figure(used, row, "request_count")
    return visit.linked(number(count), "analytics_requests_changelist", api_key_id=row.pk) if count else number(count)


def _state(row: ApiKey) -> Any:
    if row.revoked_at is not None:
        return format_html("{} {}", status("revoked", "bad"), moment(row.revoked_at))
    if row.expires_at is None:
        return status("active", "good")
    if row.expires_at <= timezone.now():
        return format_html("{} {}", status("expired", "warn"), moment(row.expires_at))
    return format_html("{} until {}", status("active", "good"), moment(row.expires_at))


def _team(visit: Visit, row: ApiKey) -> Any:
    return NONE if row.team is None else visit.linked(row.team.name, "teams", team=row.team_id)


def _change_forms(visit: Visit, row: ApiKey) -> Any:
    if row.revoked_at is not None:
        return ""
    address = visit.link("api_keys", key=row.pk)
    context = {"row": row, "address": address, "csrf_token": get_token(visit.request)}
    return render_to_string("api_keys/revoke.html", context)
