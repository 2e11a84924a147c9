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
    fieldsets = [
        (None, {"fields": ["project"]}),
        (
            "Routing",
            {
                "fields": [
                    "preferred_models",
                    "fallback_enabled",
                    "fallback_order",
                    "retry_enabled",
                    "retry_max_attempts",
                    "introspection_enabled",
                    "thinking_budget_tokens",
                    "cache_ttl_seconds",
                ]
            },
        ),
        (
            "Limits and budgets",
            {
                "fields": [
                    "rate_limit_enabled",
                    "rate_limit_rpm",
                    "rate_limit_tpm",
                    "monthly_budget_usd",
                    "budget_hard_stop",
                    "session_budget_usd",
                    "budget_alert_enabled",
                    "alert_webhook_url",
                    "alert_emails",
                ]
            },
        ),
        ("Guardrails", {"fields": ["guardrails", "judge_model"]}),
        ("Request log", {"fields": ["log_content", "retention_days"]}),
        ("Agent", {"fields": ["agent_enabled", "agent_scopes", "agent_model"]}),
    ]
