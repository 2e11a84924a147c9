from __future__ import annotations

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from core.site.admin import RightsAdmin
from prompts.content.messages import written_out
from prompts.models import PromptActivation, PromptConfig, PromptVersion


@admin.register(PromptConfig)
class PromptConfigAdmin(RightsAdmin):
    page_of_changes = "prompts"
    list_display = ["name", "project", "active_version", "version_count", "has_active_rollout", "updated_at"]
    list_filter = ["has_active_rollout", "project"]
    list_select_related = ["project", "active_version"]
    search_fields = ["name", "description", "project__name"]
    fields = ("project", "name", "description", "active_version", "version_count", "has_active_rollout", "updated_at")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[PromptConfig]:
        configs: QuerySet[PromptConfig] = super().get_queryset(request)
        return configs.annotate(version_count=Count("versions"))

    @admin.display(description="versions")
    def version_count(self, config: PromptConfig) -> int:
        count: int = config.version_count  # type: ignore[attr-defined]  # annotated by get_queryset
        return count


@admin.register(PromptVersion)
class PromptVersionAdmin(RightsAdmin):
    page_of_changes = "prompts"
    project_lookup = "config__project"
    list_display = ["number", "config", "active", "model", "commit_message", "created_by", "created_at"]
    list_filter = ["config__project"]
    list_select_related = ["config"]
    search_fields = ["config__name", "commit_message", "system_prompt"]
    fields = [
        *("config", "number", "active", "prompt", "model", "temperature", "max_tokens", "variables", "tools"),
        *("response_format", "commit_message", "created_by", "created_at"),
    ]
    readonly_fields = ["active", "prompt"]

    @admin.display(boolean=True)
    def active(self, version: PromptVersion) -> bool:
        return version.config.active_version_id == version.pk

    @admin.display(description="prompt")
    def prompt(self, version: PromptVersion) -> str:
        return format_html("<pre>{}</pre>", written_out(version.system_prompt, version.messages))


@admin.register(PromptActivation)
class PromptActivationAdmin(RightsAdmin):
    page_of_changes = "prompts"
    project_lookup = "config__project"
    list_display = ["created_at", "config", "kind", "from_version", "to_version", "actor", "reason"]
    list_filter = ["kind", "config__project"]
    list_select_related = ["config", "from_version", "to_version"]
    search_fields = ["config__name", "actor", "reason"]
    date_hierarchy = "created_at"
    ordering = ["-id"]
