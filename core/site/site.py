"""The admin site, which opens a page only for people who have its right in some project."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any

from django.contrib.admin import AdminSite, autodiscover
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, path
from typing_extensions import override

from core.audit.pages import audited
from core.rights.asking import may, right_of_page
from core.roles import Right
from core.ui.frame import frame_of
from core.ui.registry import registered_pages

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class Pages:
    """Access for templates: `pages.<name of the URL>` is true if the person may open that page in any project."""

    def __init__(self, person: AbstractBaseUser | AnonymousUser) -> None:
        self._person = person

    def __getitem__(self, url_name: str) -> bool:
        return may(self._person, right_of_page(url_name))


class RightsAdminSite(AdminSite):
    """The admin site checks a page's right in any project; `core.site.admin` checks the project and the row."""

    @override
    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        def checked_view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            named = request.resolver_match.url_name if request.resolver_match else None
            # Django's unnamed pages redirect to a page with a name, or find nothing.
            right = right_of_page(named) if named else Right.SIGNED_IN
            if not may(request.user, right):
                raise PermissionDenied
            if request.method in ("GET", "HEAD"):
                shown: HttpResponseBase = view(request, *args, **kwargs)
                return shown
            return audited(request, named or "", lambda: view(request, *args, **kwargs))

        return super().admin_view(update_wrapper(checked_view, view), cacheable)

    @override
    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Returns the pages that the apps registered, then Django's own. A page may take the place of one of
        Django's."""
        autodiscover()
        pages = [path(page.route, self.admin_view(page.view), name=page.name) for page in registered_pages()]
        tables = path("tables/", self.admin_view(self.tables), name="tables")
        return [*pages, tables, *super().get_urls()]

    def tables(self, request: HttpRequest) -> HttpResponseBase:
        """The page of all tables, which is Django's index."""
        return super().index(request, {"title": "All tables"})

    @override
    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            **super().each_context(request),
            "pages": Pages(request.user),
            "frame": frame_of(request) if self.has_permission(request) else None,
        }
