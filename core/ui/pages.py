"""The base of the operators' pages. `docs/pages.md` describes the pages; `core.rights.table` says who may open each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponseNotAllowed, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string

from core.models import Project
from core.rights.asking import actor_of, may, right_of_page
from core.roles import Right
from core.ui.choices import ZONE, choose_period, choose_project, choose_zone, zone_of
from core.ui.frame import make_frame
from core.ui.navigation import address_if_there, address_of
from core.ui.panels import (
    Panel,
    forget_attempts,
    in_thread,
    page_response,
    panel_name,
    panel_response,
    within_limit,
)
from core.ui.periods import Period


@dataclass(frozen=True, slots=True)
class Visit:
    """The context of a request that a page answers: who, which project, which range, which time zone."""

    request: HttpRequest
    project: Project
    period: Period
    zone: ZoneInfo

    @property
    def person(self) -> Any:
        return self.request.user

    @property
    def actor(self) -> str:
        """The person as rows name who did something."""
        return actor_of(self.person)

    @property
    def sees_content(self) -> bool:
        """True if the person may read texts that people and models wrote."""
        return self.may(Right.READ_CONTENT)

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of an address that name project and range."""
        return {"project": str(self.project.pk), **self.period.parameters}

    def may(self, right: Right) -> bool:
        return may(self.person, right, self.project.pk)

    def require(self, right: Right) -> None:
        """Raises PermissionDenied if the person does not have this right in the project."""
        if not self.may(right):
            raise PermissionDenied

    def note_change(self, row: Model, message: str) -> None:
        """Leaves an entry in the admin's own history."""
        LogEntry.objects.log_actions(
            user_id=self.person.pk,
            queryset=type(row)._default_manager.filter(pk=row.pk),
            action_flag=CHANGE,
            change_message=message,
            single_object=True,
        )

    def link(self, url_name: str, *args: Any, **query: Any) -> str:
        """Returns the address of another page for this project and range; empty values of `query` are left out."""
        return address_of(url_name, *args, query=self._query(query))

    def link_if_there(self, url_name: str, *args: Any, **query: Any) -> str:
        """Returns what `link` does, or an empty text for a page that is not there or that the person may not open."""
        if not self.may(right_of_page(url_name)):
            return ""
        return address_if_there(url_name, *args, query=self._query(query))

    def _query(self, query: Mapping[str, Any]) -> dict[str, str | list[str]]:
        own = self.parameters
        if "range" in query or "start" in query or "end" in query:
            # Bounds of this page's range mean nothing beside another range.
            own = {"project": own["project"]}
        merged = {**own, **query}
        return {
            name: [str(one) for one in value] if isinstance(value, list) else str(value)
            for name, value in merged.items()
            if value not in (None, "", [])
        }


def _right_in_project(url_name: str) -> Right:
    """Returns the right that a page needs in its project. A page for everybody who is signed in shows a project that
    the person may read."""
    right = right_of_page(url_name)
    return Right.READ if right is Right.SIGNED_IN else right


class Page:
    """A page of one project: `context` is cheap, `panels` ask the stores.

    A route with `<uuid:project_id>` names the project in its path, and `project_id` finds that of a record whose id is
    there; the other pages have it in the address.
    """

    name: ClassVar[str]
    route: ClassVar[str]
    title: ClassVar[str]
    template: ClassVar[str]
    # The URL name of the page above a page of one record.
    parent: ClassVar[str] = ""
    methods: ClassVar[tuple[str, ...]] = ("GET", "HEAD")

    @classmethod
    def view(cls, request: HttpRequest, **route: Any) -> HttpResponseBase:
        """The view of Django's URLs. Raises PermissionDenied, and Http404 for a project without the right."""
        return cls().respond(request, **route)

    def project_id(self, **route: Any) -> UUID | None:
        """Returns the project that the path alone names; None where it is in the address. Raises Http404."""
        named: UUID | None = route.get("project_id")
        return named

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        """Returns the template's context beside that of the frame. Raises Http404 for a record that is not there."""
        return {}

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return ()

    def existence(self, visit: Visit, **route: Any) -> Callable[[], bool] | None:
        """Returns a function that asks the analytics store whether it has the record of the page, for a thread that may
        not use the SQL database; None for a page that needs no answer.

        A page without its record has the status 404. Its first byte waits for the answer for half a second;
        if there is none by then, the status is 200 and the panels say what is wrong.
        """
        return None

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        """Handles a form of the page. A page with forms has POST among its `methods`."""
        return HttpResponseNotAllowed(self.methods)

    def respond(self, request: HttpRequest, **route: Any) -> HttpResponseBase:
        if request.method not in self.methods:
            return HttpResponseNotAllowed(self.methods)
        named = self.project_id(**route)
        project = choose_project(request, _right_in_project(self.name), named)
        if project is None:
            return self._without_project(request)
        if ZONE in request.GET:
            choose_zone(request, request.GET[ZONE])
        zone = zone_of(request)
        period, problem = choose_period(request, zone)
        visit = Visit(request, project, period, zone)
        if request.method == "POST":
            forget_attempts(request)
            return self.post(visit, **route)
        if ZONE in request.GET or (named is None and "project" not in request.GET):
            return HttpResponseRedirect(f"{request.path}?{self._address_query(visit, named is None)}")
        make_frame(request, project, period, problem, parent=self.parent)
        return self._page(visit, route)

    def render(self, visit: Visit, panels: Sequence[Panel] = (), **context: Any) -> HttpResponseBase:
        """Returns the page with this context, as after a form that has errors."""
        shared = {"visit": visit, "page": self}
        everything = {
            **admin.site.each_context(visit.request),
            **shared,
            "title": self.title,
            "panels": {panel.name: panel for panel in panels},
            **context,
        }
        page = render_to_string(self.template, everything, visit.request)
        return page_response(visit.request, page, panels, shared)

    def _page(self, visit: Visit, route: Mapping[str, Any]) -> HttpResponseBase:
        panels = self.panels(visit, **route)
        alone = panel_name(visit.request)
        if alone is not None:
            found = next((panel for panel in panels if panel.name == alone), None)
            if found is None:
                raise Http404("There is no such panel.")
            return panel_response(visit.request, found, {"visit": visit, "page": self})
        existence = self.existence(visit, **route)
        lookup = None if existence is None else in_thread(existence)
        page = self.render(visit, panels, **self.context(visit, **route))
        if lookup is not None and not within_limit(lookup, otherwise=True):
            page.status_code = 404
        return page

    def _address_query(self, visit: Visit, with_project: bool) -> str:
        """Returns the query of the page's full address, so that a copied address shows others the same."""
        query = visit.request.GET.copy()
        query.pop(ZONE, None)
        for name, value in visit.parameters.items():
            if with_project or name != "project":
                query[name] = value
        return query.urlencode()

    def _without_project(self, request: HttpRequest) -> HttpResponseBase:
        if not may(request.user, right_of_page(self.name)):
            raise PermissionDenied
        context = {**admin.site.each_context(request), "title": self.title, "page": self}
        return page_response(request, render_to_string("ui/no_project.html", context, request), [], {})
