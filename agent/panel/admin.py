from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from django.contrib import admin
from django.http import HttpRequest, HttpResponseNotAllowed, JsonResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from agent.models import Panel
from agent.panel.links import links_of
from agent.panel.markdown import CHARACTERS, no_links, rendered_texts
from agent.panel.origin import Origin, origin_of
from agent.panel.questions import questions_on
from agent.worker.limits import MESSAGE_CHARACTERS
from core.errors import ValidationError
from core.http.exception_handler import error_body
from core.lookup.registry import as_uuid
from core.models import Project
from core.rights.asking import may, projects_with, right_of_page
from core.roles import Right
from core.site.pages import PageAdmin
from core.ui.choices import choose_project
from core.ui.navigation import address_of

MAX_TEXTS = 10


class Texts(msgspec.Struct, forbid_unknown_fields=True):
    texts: list[str]
    # The project in which the texts name things; without one nothing becomes a link.
    project_id: UUID | None = None


@admin.register(Panel)
class PanelAdmin(PageAdmin):
    template = "admin/agent/panel/page.html"
    title = "Ask the agent"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            *super().get_urls(),
            path("beside/", view(self.beside), name="agent_panel_beside"),
            path("rendered/", view(self.render), name="agent_panel_rendered"),
        ]

    def details(self, request: HttpRequest) -> dict[str, Any]:
        origin = origin_of(self.admin_site, request, request.GET.get("from", ""))
        project = self._project(request, origin)
        return {
            "project": project,
            "settings_address": self._settings_address(request, project),
            "origin": origin,
            "questions": questions_on(origin["data"]["view"] if origin else ""),
            "message_characters": MESSAGE_CHARACTERS,
            "rendered_characters": CHARACTERS,
            "rendered_texts": MAX_TEXTS,
        }

    def beside(self, request: HttpRequest) -> HttpResponseBase:
        self.require_permission(request)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        context: Mapping[str, Any] = {"is_beside": True, **self.details(request)}
        return TemplateResponse(request, "admin/agent/panel/panel.html", dict(context))

    def render(self, request: HttpRequest) -> HttpResponseBase:
        """Handles POST `{"texts": [markdown, ...]}` and answers `{"html": [...]}` in the same order."""
        self.require_permission(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            given = msgspec.json.decode(request.body, type=Texts)
        except (msgspec.DecodeError, RecursionError):
            return _refused('Expected {"texts": ["…"], "project_id": "…"}.')
        if len(given.texts) > MAX_TEXTS or any(len(text) > CHARACTERS for text in given.texts):
            return _refused(f"texts: at most {MAX_TEXTS}, of {CHARACTERS} characters each.")
        find = partial(links_of, request.user, given.project_id) if given.project_id else no_links
        return JsonResponse({"html": rendered_texts(given.texts, find)})

    def _settings_address(self, request: HttpRequest, project: Project | None) -> str:
        if project is None or not may(request.user, right_of_page("settings"), project.pk):
            return ""
        return address_of("settings", query={"project": str(project.pk)}) + "#id_agent_model"

    def _project(self, request: HttpRequest, origin: Origin | None) -> Project | None:
        named = as_uuid(origin["project"] if origin else "")
        own = projects_with(request.user, self.rights.view).filter(pk=named).first() if named else None
        found = own or choose_project(request, Right.READ, is_strict=False)
        return found if found and may(request.user, self.rights.view, found.pk) else None


def _refused(message: str) -> JsonResponse:
    error = ValidationError(message)
    return JsonResponse(error_body(error), status=error.status)
