from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.admin import AdminSite, autodiscover
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from core.audit.pages import audited
from core.rights.asking import may, right_of_page
from core.roles import Right
from core.sign_in import codes
from core.sign_in import views as sign_in
from core.sign_in.invitations import invitation_page
from core.ui.frame import frame_of
from core.ui.registry import registered_pages

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class Pages:
    def __init__(self, person: AbstractBaseUser | AnonymousUser) -> None:
        self._person = person

    def __getitem__(self, url_name: str) -> bool:
        return may(self._person, right_of_page(url_name))


class RightsAdminSite(AdminSite):
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

    def get_urls(self) -> list[URLPattern | URLResolver]:
        autodiscover()
        pages = [path(page.route, self.admin_view(page.view), name=page.name) for page in registered_pages()]
        tables = path("tables/", self.admin_view(self.tables), name="tables")
        ways_in = [
            path("second-factor/", self.second_factor, name="second_factor"),
            path("second-factor/code/", self.second_factor_code, name="second_factor_code"),
            path("invitation/<str:token>/", self.invitation, name="invitation"),
            path("sign-in/<slug:provider>/", sign_in.begin, name="sign_in"),
            path("sign-in/<slug:provider>/callback/", sign_in.callback, name="sign_in_callback"),
        ]
        return [*pages, tables, *ways_in, *super().get_urls()]

    @method_decorator(never_cache)
    def login(  # type: ignore[override]  # the stubs name a subclass
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        if request.method == "GET" and self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index"))
        context = {**self.each_context(request), "title": "Log in", "app_path": request.get_full_path()}
        return sign_in.LocalLoginView.as_view(extra_context=context)(request)

    @method_decorator(never_cache)
    def second_factor(self, request: HttpRequest) -> HttpResponseBase:
        return codes.set_up_page(request, self.each_context(request))

    @method_decorator(never_cache)
    def second_factor_code(self, request: HttpRequest) -> HttpResponseBase:
        return codes.code_page(request, self.each_context(request))

    @method_decorator(never_cache)
    def invitation(self, request: HttpRequest, token: str) -> HttpResponseBase:
        return invitation_page(request, self.each_context(request), token)

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        there = sign_in.log_out_there(request)
        response = super().logout(request, {"log_out_there": there, **(extra_context or {})})
        if there is not None:
            # A redirect would count as a part of the form, which the content security policy keeps within the service.
            response.headers["Refresh"] = f"0; url={there[1]}"
        return response

    def tables(self, request: HttpRequest) -> HttpResponseBase:
        return super().index(request, {"title": "All tables"})

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            **super().each_context(request),
            "pages": Pages(request.user),
            "has_local_login": settings.LOCAL_LOGIN,
            "frame": frame_of(request) if self.has_permission(request) else None,
        }
