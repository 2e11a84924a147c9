"""The gateway's settings in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from typing_extensions import override

from core.rights.admin import RightsAdmin
from gateway.alerts import admin as alerts_admin  # noqa: F401 - registers itself
from gateway.alerts import operator_admin  # noqa: F401 - registers itself
from gateway.forms import GUARDRAIL_FIELDS, GatewaySettingsForm
from gateway.models import GatewaySettings, SettingsChange
from gateway.playground import admin as playground_admin  # noqa: F401 - registers itself
from gateway.services import save_settings


@admin.register(GatewaySettings)
class GatewaySettingsAdmin(RightsAdmin):
    form = GatewaySettingsForm
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

    @override
    def save_model(self, request: HttpRequest, obj: GatewaySettings, form: Any, change: bool) -> None:
        save_settings(obj, actor=f"user:{request.user.get_username()}")

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
        ("Guardrails", {"fields": [*GUARDRAIL_FIELDS, "judge_model"]}),
        ("Request log", {"fields": ["log_content", "retention_days"]}),
        ("Agent", {"fields": ["agent_enabled", "agent_scopes", "agent_model"]}),
    ]


@admin.register(SettingsChange)
class SettingsChangeAdmin(RightsAdmin):
    list_display = ["created_at", "project", "actor", "changes"]
    list_select_related = ["project"]
    list_filter = ["created_at"]
    search_fields = ["project__name", "actor"]
    readonly_fields = ["project", "actor", "created_at", "changes"]
