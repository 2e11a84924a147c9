from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.html import format_html

from console.provider_keys.forms import ProviderKeyForm
from core.errors import ApplicationError
from core.models import AuditEntry
from core.rights.asking import sees_every_project
from core.ui.edit import EditPage
from core.ui.formats import age, moment
from core.ui.marks import status
from core.ui.navigation import address_of
from core.ui.pages import Page, Visit
from core.ui.tables import Column, Empty, Table
from integrations.access.credentials import is_usable, masked
from integrations.access.deployments import title_of
from integrations.connection_tests.services import remember, try_integration
from integrations.connectivity.outcomes import ConnectionOutcome
from integrations.models import ProviderIntegration, called
from integrations.registry import provider_named, provider_title, providers
from integrations.selectors import project_integrations
from integrations.services import IntegrationChange, add_integration, remove_integration, update_integration

_SECRETS = ("encrypted_secret", "encrypted_extra")


class _Chosen(NamedTuple):
    """`row` is None until the integration is stored."""

    name: str
    provider: str
    row: ProviderIntegration | None


class ProviderKeysPage(Page):
    route = "keys/providers/"
    name = "provider_keys"
    title = "Provider keys"
    has_range = False
    template = "provider_keys/list.html"

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        rows = list(project_integrations(visit.project.pk))
        return {"table": _table(visit, rows), "offered": offered_providers({row.provider for row in rows})}


class ProviderKeyPage(EditPage[_Chosen, ProviderKeyForm]):
    # The name is in the address, or in the query where the form of the list sends it.
    route = "keys/provider/"
    name = "provider_key"
    title = "Provider key"
    has_range = False
    template = "provider_keys/key.html"
    parent = "provider_keys"

    def respond(self, request: HttpRequest, **route: Any) -> HttpResponseBase:
        typed = request.GET.get("provider", "")
        if typed and not provider_named(typed):
            messages.error(request, f"There is no provider called {typed[:50]}. The field offers those that there are.")
            query = {"project": request.GET["project"]} if request.GET.get("project") else None
            return HttpResponseRedirect(address_of("provider_keys", query=query))
        return super().respond(request, **route)

    def record(self, visit: Visit, **route: Any) -> _Chosen:
        return _chosen(visit)

    def form(self, visit: Visit, record: _Chosen, data: Any = None) -> ProviderKeyForm:
        return ProviderKeyForm(record.provider, record.row, data)

    def save(self, visit: Visit, record: _Chosen, form: ProviderKeyForm) -> HttpResponseBase:
        _store(visit, record, form.change())
        return visit.done(f"{record.name}: saved. ", visit.link("provider_keys"))

    def refuse(self, form: ProviderKeyForm, error: ApplicationError) -> None:
        form.add_problem(error.message, error.details)

    def address(self, visit: Visit, record: _Chosen) -> str:
        return visit.link(self.name, name=record.name)

    def shown(self, visit: Visit, record: _Chosen, form: ProviderKeyForm) -> dict[str, Any]:
        row, title = record.row, title_of(record.provider, record.name)
        return {
            "title": f"Add {title}" if row is None else title,
            "name": record.name,
            "provider_title": provider_title(record.provider),
            "row": row,
            "masked": masked(row) if row else "",
            "is_usable": is_usable(row) if row else True,
            "since": key_since(row) if row else None,
            "last_test": last_test(row) if row else "",
        }

    def do_test_save(self, visit: Visit, record: _Chosen) -> HttpResponseBase:
        """Saves the form only if the provider accepts the key."""
        form, outcome = self.form(visit, record, visit.request.POST), None
        if form.is_valid():
            try:
                outcome = _try(visit, record, form.change())
                if outcome.ok:
                    remember(_store(visit, record, form.change()), outcome)
                    said = f"{record.name}: saved. {sentence_of(outcome)}"
                    return visit.done(said, visit.link("provider_keys"))
            except ApplicationError as error:
                self.refuse(form, error)
        return self.again(visit, record, form, outcome=outcome)

    def do_test(self, visit: Visit, record: _Chosen) -> HttpResponseBase:
        outcome = _try(visit, _stored(record))
        answer = visit.done if outcome.ok else visit.failed
        return answer(f"{record.name}: {sentence_of(outcome)}", self.address(visit, record))

    def do_enable(self, visit: Visit, record: _Chosen) -> HttpResponseBase:
        _store(visit, _stored(record), IntegrationChange(enabled=True))
        return visit.done(f"{record.name} is enabled.", self.address(visit, record))

    def do_disable(self, visit: Visit, record: _Chosen) -> HttpResponseBase:
        _store(visit, _stored(record), IntegrationChange(enabled=False))
        return visit.done(f"{record.name} is disabled.", self.address(visit, record))

    def do_remove(self, visit: Visit, record: _Chosen) -> HttpResponseBase:
        remove_integration(project_id=visit.project.pk, name=_stored(record).name)
        return visit.done(f"The key of {record.name} was removed.", visit.link("provider_keys"))


def offered_providers(used: set[str]) -> list[str]:
    return [provider_title(name) for name in sorted(providers(), key=used.__contains__)]


def sentence_of(outcome: ConnectionOutcome) -> str:
    took = "" if outcome.latency_ms is None else f" ({outcome.latency_ms:.0f} ms)"
    return f"{outcome.detail}{took}"


def key_since(row: ProviderIntegration) -> datetime:
    """Returns when the present secret was entered, from the audit log; else when the row was made."""
    entries = AuditEntry.objects.for_project(row.project_id).filter(object_kind="provider key", object_id=str(row.pk))
    dates = [entries.filter(changes__has_key=name).values_list("created_at", flat=True).first() for name in _SECRETS]
    return max((found for found in dates if found), default=row.created_at)


def _chosen(visit: Visit) -> _Chosen:
    """The address names an integration, or a provider for a new one. Raises Http404 for an unknown provider."""
    provider = provider_named(visit.request.GET.get("provider", ""))
    name = visit.request.GET.get("name", "").strip() or provider
    row = ProviderIntegration.objects.for_project(visit.project.pk).filter(called(name)).first()
    provider = row.provider if row is not None else provider
    if not provider:
        raise Http404("There is no such provider.")
    return _Chosen(name, provider, row)


def _try(visit: Visit, chosen: _Chosen, change: IntegrationChange | None = None) -> ConnectionOutcome:
    return try_integration(
        project_id=visit.project.pk,
        name=chosen.name,
        provider=chosen.provider,
        change=change,
        trusted=sees_every_project(visit.person),
    )


def _store(visit: Visit, chosen: _Chosen, change: IntegrationChange) -> ProviderIntegration:
    project_id, is_trusted = visit.project.pk, sees_every_project(visit.person)
    if chosen.row is not None:
        return update_integration(project_id=project_id, name=chosen.name, change=change, trusted=is_trusted)
    return add_integration(
        project_id=project_id, provider=chosen.provider, name=chosen.name, change=change, trusted=is_trusted
    )


def _stored(chosen: _Chosen) -> _Chosen:
    if chosen.row is None:
        raise Http404("The project has no key of this provider.")
    return chosen


def last_test(row: ProviderIntegration) -> Any:
    if row.last_tested_at is None:
        return status("not tested", "neutral")
    kind = "good" if row.last_test_ok else "bad"
    words = "ok" if row.last_test_ok else row.last_test_reason.replace("_", " ")
    return format_html("{} {} ago", status(words, kind), age(row.last_tested_at))


def _state(row: ProviderIntegration) -> Any:
    if not is_usable(row):
        return status("unreadable", "bad", "cannot be decrypted: enter it again")
    return status("enabled", "good") if row.enabled else status("disabled", "neutral")


def _table(visit: Visit, rows: list[ProviderIntegration]) -> Table:
    return Table(
        caption="Providers of this project",
        columns=[
            Column("name", "Name", lambda row: row.name),
            Column("provider", "Provider", lambda row: provider_title(row.provider)),
            Column("share", "Priority and weight", lambda row: f"{row.priority}, {row.weight}"),
            Column("key", "Key", lambda row: format_html("<code>{}</code>", masked(row) or "none")),
            Column("state", "State", _state),
            Column("age", "Age of the key", lambda row: age(key_since(row))),
            Column("test", "Last test", last_test),
            Column("changed", "Changed", lambda row: moment(row.updated_at), gives_way=True),
            Column("rotate", "Rotate", lambda row: _rotate(visit, row)),
        ],
        rows=rows,
        key=lambda row: visit.link("provider_key", name=row.name),
        empty=Empty("This project has no provider key yet: choose a provider below."),
    )


def _rotate(visit: Visit, row: ProviderIntegration) -> Any:
    href = visit.link("provider_key", name=row.name)
    return format_html('<a class="button" href="{}">Rotate<span class="sr"> {}</span></a>', href, row.name)
