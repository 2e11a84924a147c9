"""The gateway's settings in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from gateway.models import GatewaySettings

if TYPE_CHECKING:
    # Generic in the stubs only.
    SettingsModelAdmin = admin.ModelAdmin[GatewaySettings]
else:
    SettingsModelAdmin = admin.ModelAdmin


@admin.register(GatewaySettings)
class GatewaySettingsAdmin(SettingsModelAdmin):
    list_display = [
        "project",
        "retry_enabled",
        "retry_max_attempts",
        "fallback_enabled",
        "fallback_order",
        "updated_at",
    ]
    list_select_related = ["project"]
    list_filter = ["retry_enabled", "fallback_enabled"]
    search_fields = ["project__name"]
    autocomplete_fields = ["project"]
    fields = [
        "project",
        "preferred_models",
        "fallback_enabled",
        "fallback_order",
        "retry_enabled",
        "retry_max_attempts",
    ]
