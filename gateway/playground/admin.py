"""The playground's page in the admin. What it does, it does through the management API, as the one who is signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from typing_extensions import override

from core.models import Project
from gateway.models import Playground
from gateway.playground.serializers import MOST_MODELS

if TYPE_CHECKING:
    PlaygroundModelAdmin = admin.ModelAdmin[Playground]  # generic in the stubs only
else:
    PlaygroundModelAdmin = admin.ModelAdmin

PERMISSION = "gateway.use_playground"
SEES_REQUESTS = "analytics.view_requests"
# Nothing but the page's own files runs, whatever a model writes.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@admin.register(Playground)
class PlaygroundAdmin(PlaygroundModelAdmin):
    @override
    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    @override
    def has_view_permission(self, request: HttpRequest, obj: Playground | None = None) -> bool:
        return request.user.has_perm(PERMISSION)

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @override
    def has_change_permission(self, request: HttpRequest, obj: Playground | None = None) -> bool:
        return False

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Playground | None = None) -> bool:
        return False

    @override
    def get_urls(self) -> list[URLPattern]:
        return [path("", self.admin_site.admin_view(self.page), name="gateway_playground_changelist")]

    def page(self, request: HttpRequest) -> HttpResponseBase:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "opts": self.model._meta,
            "title": "Playground",
            "projects": Project.objects.order_by("name", "id"),
            "most_models": MOST_MODELS,
            "sees_requests": request.user.has_perm(SEES_REQUESTS),
        }
        response = TemplateResponse(request, "admin/gateway/playground/page.html", context)
        response.headers["Content-Security-Policy"] = POLICY
        return response
