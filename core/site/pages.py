from __future__ import annotations

from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from core.rights.asking import projects_with
from core.site.admin import RightsAdmin


class PageAdmin(RightsAdmin):
    project_lookup = ""
    template: ClassVar[str]
    title: ClassVar[str]

    def details(self, request: HttpRequest) -> dict[str, Any]:
        return {}

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_changelist"
        return [path("", self.admin_site.admin_view(self.page), name=name)]

    def page(self, request: HttpRequest) -> HttpResponseBase:
        self.require_permission(request)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": self.title,
            "projects": projects_with(request.user, self.rights.view),
            **self.details(request),
        }
        return TemplateResponse(request, self.template, context)

    def require_permission(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied
