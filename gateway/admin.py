"""The gateway's settings in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from typing_extensions import override

from core.site.admin import RightsAdmin
from gateway.alerts import admin as alerts_admin  # noqa: F401 - registers itself
from gateway.alerts import operator_admin  # noqa: F401 - registers itself
from gateway.forms import GUARDRAIL_FIELDS, GatewaySettingsForm
from gateway.models import GatewaySettings, SettingsChange
from gateway.reports.settings_warnings import settings_warnings
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
        self._warn(request, obj)

    @override
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, object_id) if request.method == "GET" else None
        if row is not None and self.has_view_or_change_permission(request, row):
            self._warn(request, row)
        return super().change_view(request, object_id, form_url, extra_context)

    def _warn(self, request: HttpRequest, row: GatewaySettings) -> None:
        for warning in settings_warnings(row):
            self.message_user(request, f"Setting {warning.field}: {warning.message}", messages.WARNING)

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
                    "prompt_cache_markers",
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
                    "end_user_monthly_budget_usd",
                    "end_user_rpm",
                    "end_user_tpm",
                    "end_user_max_concurrent",
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
