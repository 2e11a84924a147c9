"""The short address of a request, `/admin/r/<id>`, which stays when the addresses of pages change. It is not a secret:
opening it takes a role in the request's project and shows what this role may see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase

from analytics.deletion.selectors import when_deleted
from analytics.queries.requests import find_project
from core.errors import ServiceUnavailableError
from core.rights.asking import projects_with
from core.roles import Right
from core.ui.formats import day
from core.ui.navigation import address_of
from core.ui.pages import Page, Visit

NAME = "request_link"

_UNKNOWN = (
    "There is no request of this id in the projects that you may read. It was made in another project, or it is past"
    " the time for which its project keeps requests."
)


class RequestLinkPage(Page):
    name = NAME
    route = "r/<uuid:request_id>"
    parent = "analytics_requests_changelist"
    title = "Request"
    template = "requests/detail/gone.html"

    def _page(self, visit: Visit, route: Mapping[str, Any]) -> HttpResponseBase:
        request_id: UUID = route["request_id"]
        projects = list(projects_with(visit.person, Right.READ).values_list("pk", flat=True))
        log = visit.link(self.parent)
        try:
            project_id = find_project(projects, request_id)
        except ServiceUnavailableError as error:
            page = self.render(visit, reason=error.message, log=log)
            page.status_code = error.status
            return page
        if project_id is not None:
            return HttpResponseRedirect(address_of("analytics_requests_detail", project_id, request_id))
        deleted_at = when_deleted(projects, request_id)
        reason = f"This request was deleted on {day(deleted_at)}; its texts are gone for good." if deleted_at else ""
        page = self.render(visit, reason=reason or _UNKNOWN, log=log)
        page.status_code = 404
        return page


def short_address(visit: Visit, request_id: UUID) -> str:
    return str(visit.request.build_absolute_uri(address_of(NAME, request_id)))
