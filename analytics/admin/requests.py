"""The request log among the tables of the admin. Its pages are in the console."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern
from typing_extensions import override

from analytics.models import Requests
from core.site.admin import RightsAdmin


@admin.register(Requests)
class RequestsAdmin(RightsAdmin):
    # The model has no rows that lead to a project, so the pages ask for projects themselves.
    project_lookup = ""

    @override
    def get_urls(self) -> list[URLPattern]:
        """Returns no pages: `analytics_requests_changelist` is one of the console."""
        return []
