"""The read-only admin pages of the request log, filtered by project, session, operation and outcome."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from typing_extensions import override

from analytics.contracts import Operation, Outcome
from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from analytics.models import Requests
from analytics.queries.request_filters import RequestFilter
from analytics.queries.requests import list_requests
from core.errors import ApplicationError
from core.models import Project
from core.rights.admin import RightsAdmin
from core.rights.asking import may, projects_with
from core.rights.roles import Right

_PAGE_SIZE = 50
# A deep page of the log is expensive to read; filters find a request faster.
_LAST_PAGE = 200


class LogForm(forms.Form):
    project = forms.ModelChoiceField(Project.objects.none(), empty_label=None)
    session = forms.CharField(required=False, strip=False, max_length=1024)
    operation = forms.ChoiceField(
        required=False, choices=[("", "any operation"), *((item, item) for item in Operation)]
    )
    outcome = forms.ChoiceField(required=False, choices=[("", "any outcome"), *((item, item) for item in Outcome)])
    p = forms.IntegerField(required=False, min_value=1, max_value=_LAST_PAGE, widget=forms.HiddenInput)

    def __init__(self, projects: QuerySet[Project], given: dict[str, Any]) -> None:
        first = None if given.get("project") else projects.values_list("pk", flat=True).first()
        super().__init__({**given, "project": first} if first else given)
        self.fields["project"] = forms.ModelChoiceField(projects, empty_label=None)


@admin.register(Requests)
class RequestsAdmin(RightsAdmin):
    # The model has no rows that lead to a project, so the pages ask for projects themselves.
    project_lookup = ""

    @override
    def get_urls(self) -> list[URLPattern]:
        show = self.admin_site.admin_view(self.changelist_view)
        return [path("", show, name="analytics_requests_changelist")]

    @override
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        self._require_view(request)
        form = LogForm(projects_with(request.user, self.rights.view), request.GET.dict())
        context: dict[str, Any] = {"form": form, "rows": [], "title": "Requests"}
        try:
            if form.is_valid():
                context.update(self._page(form.cleaned_data))
                context["sees_content"] = may(request.user, Right.READ_CONTENT, form.cleaned_data["project"].pk)
        except (AnalyticsUnavailableError, AnalyticsLimitError) as error:
            return self._without_figures(request, "changelist", context, error)
        return self._render(request, "changelist", context)

    def _page(self, chosen: dict[str, Any]) -> dict[str, Any]:
        number = chosen["p"] or 1
        filters = RequestFilter(session_id=chosen["session"], operation=chosen["operation"], outcome=chosen["outcome"])
        count, rows = list_requests(chosen["project"].pk, filters, limit=_PAGE_SIZE, offset=(number - 1) * _PAGE_SIZE)
        page = Paginator(range(min(count, _LAST_PAGE * _PAGE_SIZE)), _PAGE_SIZE).get_page(number)
        return {"rows": rows, "count": count, "page": page, "project": chosen["project"]}

    def _require_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _without_figures(
        self, request: HttpRequest, name: str, context: dict[str, Any], error: ApplicationError
    ) -> HttpResponse:
        """Renders the page with the error in place of its rows, so that unknown rows do not look like none."""
        response = self._render(request, name, {**context, "problem": error.message}, status=error.status)
        for header, value in error.headers.items():
            response[header] = value
        return response

    def _render(self, request: HttpRequest, name: str, context: dict[str, Any], status: int = 200) -> TemplateResponse:
        everything = {**self.admin_site.each_context(request), "opts": self.model._meta, **context}
        return TemplateResponse(request, f"admin/analytics/requests/{name}.html", everything, status=status)
