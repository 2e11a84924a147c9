"""Alerts about the installation in the admin, for superusers, since they concern no project."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from core.site.admin import RightsAdmin
from gateway.tables.alert import OperatorAlert


@admin.register(OperatorAlert)
class OperatorAlertAdmin(RightsAdmin):
    project_lookup: ClassVar[str] = ""
    list_display = ["raised_at", "over_at", "kind", "subject", "host", "text"]
    list_filter = ["kind", "host"]
