from __future__ import annotations

from django.contrib import admin

from core.site.admin import RightsAdmin
from gateway.alerts import admin as alerts_admin  # noqa: F401 - registers itself
from gateway.models import GatewaySettings, SettingsChange


@admin.register(GatewaySettings)
class GatewaySettingsAdmin(RightsAdmin):
    page_of_changes = "settings"
    list_display = ["project", "updated_at"]
    list_select_related = ["project"]
    list_filter = ["updated_at"]
    search_fields = ["project__name"]
    readonly_fields = ["project", "values", "updated_at"]


@admin.register(SettingsChange)
class SettingsChangeAdmin(RightsAdmin):
    page_of_changes = "settings"
    date_hierarchy = "created_at"
    list_display = ["created_at", "project", "actor", "changes"]
    list_select_related = ["project"]
    list_filter = ["created_at"]
    search_fields = ["project__name", "actor"]
    readonly_fields = ["project", "actor", "created_at", "changes"]
