"""The page of the chat in the admin. Its scripts call `/api/agent` in the session of the person signed in."""

from __future__ import annotations

from typing import Any

import msgspec
from django.contrib import admin
from django.http import HttpRequest, HttpResponseNotAllowed, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from typing_extensions import override

from agent.limits import MESSAGE_CHARACTERS
from agent.models import Panel
from agent.panel.markdown import CHARACTERS, rendered
from agent.panel.origin import origin_of
from core.admin_pages import PageAdmin
from core.errors import ValidationError
from core.exception_handler import error_body

MAX_TEXTS = 10


class Texts(msgspec.Struct, forbid_unknown_fields=True):
    texts: list[str]


@admin.register(Panel)
class PanelAdmin(PageAdmin):
    template = "admin/agent/panel/page.html"
    title = "Ask the agent"

    @override
    def get_urls(self) -> list[URLPattern]:
        render = path("rendered/", self.admin_site.admin_view(self.render), name="agent_panel_rendered")
        return [*super().get_urls(), render]

    @override
    def details(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "origin": origin_of(self.admin_site, request, request.GET.get("from", "")),
            "message_characters": MESSAGE_CHARACTERS,
            "rendered_characters": CHARACTERS,
            "rendered_texts": MAX_TEXTS,
        }

    def render(self, request: HttpRequest) -> HttpResponseBase:
        """Handles POST `{"texts": [markdown, ...]}` and answers `{"html": [...]}` in the same order."""
        self.require_permission(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            texts = msgspec.json.decode(request.body, type=Texts).texts
        except (msgspec.DecodeError, RecursionError):
            return _refused('Expected {"texts": ["…"]}.')
        if len(texts) > MAX_TEXTS or any(len(text) > CHARACTERS for text in texts):
            return _refused(f"texts: at most {MAX_TEXTS}, of {CHARACTERS} characters each.")
        return JsonResponse({"html": [rendered(text) for text in texts]})


def _refused(message: str) -> JsonResponse:
    error = ValidationError(message)
    return JsonResponse(error_body(error), status=error.status)
