"""The base of the operators' pages. `docs/pages.md` describes them; `core.rights.table` says who may open each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponseNotAllowed, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html

from core.errors import NotFoundError
from core.models import Project
from core.rights.asking import actor_of, may, right_of_page
from core.roles import Right
from core.ui.choices import ZONE, choose_period, choose_project, choose_zone, zone_of
from core.ui.frame import make_frame
from core.ui.freshness import clock, complete_until
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
from core.ui.registry import register_page
from core.ui.tables import Empty

# A range that ended within this time of now is one of now.
_NOW = timedelta(seconds=30)


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
        return actor_of(self.person)

    @property
    def sees_content(self) -> bool:
        return self.may(Right.READ_CONTENT)

    @property
    def parameters(self) -> dict[str, str]:
        return {"project": str(self.project.pk), **self.period.parameters}

    @property
    def complete_until(self) -> datetime | None:
        """Up to when figures of the range are complete, None if they are; a range that is over is complete."""
        now = timezone.now()
        return complete_until(now) if self.period.end > now - _NOW else None

    def nothing(self, text: str, link: str = "", label: str = "") -> Empty:
        """`text` says that the request log has nothing, which is not known while rows of now are on their way."""
        until = self.complete_until
        if until is None:
            return Empty(text, link, label)
        return Empty(f"Nothing up to {clock(until)}; later requests are on their way to the request log.", link, label)

    def may(self, right: Right) -> bool:
        return may(self.person, right, self.project.pk)

    def require(self, right: Right) -> None:
        if not self.may(right):
            raise PermissionDenied

    def note_change(self, row: Model, message: str) -> None:
        LogEntry.objects.log_actions(
            user_id=self.person.pk,
            queryset=type(row)._default_manager.filter(pk=row.pk),
            action_flag=CHANGE,
            change_message=message,
            single_object=True,
        )

    def done(self, message: str, href: str) -> HttpResponseRedirect:
        messages.success(self.request, message)
        return HttpResponseRedirect(href)

    def failed(self, message: str, href: str) -> HttpResponseRedirect:
        messages.error(self.request, message)
        return HttpResponseRedirect(href)

    def link(self, url_name: str, *args: Any, **query: Any) -> str:
        """Keeps project and range; leaves out empty values of `query`."""
        return address_of(url_name, *args, query=self._query(query))

    def link_if_there(self, url_name: str, *args: Any, **query: Any) -> str:
        if not self.may(right_of_page(url_name)):
            return ""
        return address_if_there(url_name, *args, query=self._query(query))

    def linked(self, shown: Any, url_name: str, *args: Any, **query: Any) -> Any:
        href = self.link_if_there(url_name, *args, **query)
        return format_html('<a href="{}">{}</a>', href, shown) if href else shown

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
    right = right_of_page(url_name)
    return Right.READ if right is Right.SIGNED_IN else right


class Page:
    """A page of one project, registered if the class has a `route`. `context` is cheap; `panels` ask the stores.

    The project comes from `<uuid:project_id>` in the route, else from the record of `model` whose id is in the route,
    else from the address.
    """

    name: ClassVar[str]
    route: ClassVar[str]
    title: ClassVar[str]
    # The template of a page whose module has none of its name: that of `console.alerts.list` is `alerts/list.html`.
    template: ClassVar[str] = "ui/page.html"
    # The header offers the range, of which the page shows figures.
    has_range: ClassVar[bool] = True
    # The URL name of the page above a page of one record.
    parent: ClassVar[str] = ""
    methods: ClassVar[tuple[str, ...]] = ("GET", "HEAD")
    # The table of the record whose id is all that the path names; the page is one of the record's project.
    model: ClassVar[type[Model] | None] = None
    # What the record is called, if it is not what the title says.
    noun: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.post is not Page.post:
            cls.methods = ("GET", "HEAD", "POST")
        if "route" in vars(cls):
            register_page(cls)

    @classmethod
    def view(cls, request: HttpRequest, **route: Any) -> HttpResponseBase:
        """The view of Django's URLs. Raises PermissionDenied, and Http404 for a project without the right."""
        try:
            return cls().respond(request, **route)
        except NotFoundError as error:
            raise Http404(error.message) from error

    def project_id(self, **route: Any) -> UUID | None:
        named: UUID | None = route.get("project_id")
        if self.model is not None:
            rows = self.model._default_manager.filter(pk=next(iter(route.values())))
            named = rows.values_list("project_id", flat=True).first()
            if named is None:
                raise Http404(f"There is no such {self.noun or self.title.lower()}.")
        return named

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        """Returns the template's context beside the frame's. Raises Http404 for a missing record."""
        return {}

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        return ()

    def existence(self, visit: Visit, **route: Any) -> Callable[[], bool] | None:
        """Returns a function that asks the analytics store whether it has the page's record; None if the page needs no
        answer. It runs in a thread that may not use the SQL database.

        A page without its record is a 404. The first byte waits up to half a second for the answer; after that the
        status is 200, and the panels say what is wrong.
        """
        return None

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
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
        make_frame(request, project, period, problem, parent=self.parent, has_range=self.has_range)
        return self._page(visit, route)

    def render(self, visit: Visit, panels: Sequence[Panel] = (), **context: Any) -> HttpResponseBase:
        shared = {"visit": visit, "page": self}
        everything = {
            **admin.site.each_context(visit.request),
            **shared,
            "title": self.title,
            "panels": {panel.name: panel for panel in panels},
            **context,
        }
        own = self.__module__.partition(".")[2].replace(".", "/")
        page = render_to_string([f"{own}.html", self.template], everything, visit.request)
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
