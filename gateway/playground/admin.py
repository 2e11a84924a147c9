"""The playground's page in the admin. What it does, it does through the management API, as the one who is signed in."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from typing_extensions import override

from core.admin_pages import PageAdmin
from gateway.models import Playground
from gateway.playground.serializers import MOST_MODELS

SEES_REQUESTS = "analytics.view_requests"


@admin.register(Playground)
class PlaygroundAdmin(PageAdmin):
    permission = "gateway.use_playground"
    template = "admin/gateway/playground/page.html"
    title = "Playground"

    @override
    def details(self, request: HttpRequest) -> dict[str, Any]:
        return {"most_models": MOST_MODELS, "sees_requests": request.user.has_perm(SEES_REQUESTS)}
