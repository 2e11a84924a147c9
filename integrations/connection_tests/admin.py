"""Tests integrations from the admin: the button of a row's page and the action of the list."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse

from core.rights.asking import sees_every_project
from core.site.admin import RightsAdmin
from integrations.connection_tests.services import try_integration
from integrations.connectivity.outcomes import ConnectionOutcome
from integrations.models import ProviderIntegration

# The integrations of one action are tested one after the other while its user waits for the page.
MAX_AT_ONCE = 10


def test_page(owner: RightsAdmin, request: HttpRequest, integration_id: int) -> HttpResponse:
    """Tests the stored integration and redirects to the row's page with the outcome as a message."""
    row = owner.get_queryset(request).select_related("project").filter(pk=integration_id).first()
    if row is None:
        raise Http404("There is no such integration.")
    if not owner.has_change_permission(request, row):
        raise PermissionDenied
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    report_tests(request, [row])
    return HttpResponseRedirect(reverse("admin:integrations_providerintegration_change", args=[row.pk]))


def report_tests(request: HttpRequest, rows: Iterable[ProviderIntegration]) -> None:
    for row in rows:
        outcome = try_integration(project_id=row.project_id, name=row.name, trusted=sees_every_project(request.user))
        level = messages.SUCCESS if outcome.ok else messages.ERROR
        messages.add_message(request, level, f"{row.name} of {row.project.name}: {_sentence(outcome)}")


def _sentence(outcome: ConnectionOutcome) -> str:
    figures = [] if outcome.status is None else [f"status {outcome.status}"]
    if outcome.latency_ms is not None:
        figures.append(f"{outcome.latency_ms:.0f} ms")
    return f"{outcome.reason.value}. {outcome.detail}" + (f" ({', '.join(figures)})" if figures else "")
