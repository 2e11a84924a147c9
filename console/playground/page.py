"""The playground's script calls the management API with the signed-in user's rights."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from core.rights.asking import may, right_of_page
from core.site.pages import PageAdmin
from gateway.models import Playground
from gateway.playground.serializers import MAX_MODELS


@admin.register(Playground)
class PlaygroundAdmin(PageAdmin):
    template = "playground/page.html"
    title = "Playground"

    def details(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "max_models": MAX_MODELS,
            "sees_requests": may(request.user, right_of_page("analytics_requests_detail")),
        }
