"""Prompts in the admin: configs to edit, versions and history to read; diff, activation and undo as pages.

Versions are made over the API; no page here writes one. Every change calls a service and asks for confirmation first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from typing_extensions import override

from core.errors import ApplicationError, ValidationError
from core.rights.asking import right_of_page
from core.site.admin import RightsAdmin
from core.ui.navigation import address_if_there
from prompts import services
from prompts.admin_pages import activate_page, actor_of, diff_page, pretty, undo_page
from prompts.content.messages import written_out
from prompts.errors import ConfigExistsError
from prompts.models import PromptActivation, PromptConfig, PromptVersion

if TYPE_CHECKING:
    # ModelAdmin is generic only in the type stubs.
    ConfigModelForm = forms.ModelForm[PromptConfig]
else:
    ConfigModelForm = forms.ModelForm


class ConfigForm(ConfigModelForm):
    class Meta:
        model = PromptConfig
        fields = ["project", "name", "description"]

    def clean_name(self) -> str:
        try:
            return services.named(self.cleaned_data["name"], before=self.instance.name)
        except ValidationError as error:
            raise forms.ValidationError(error.message) from error

    @override
    def clean(self) -> dict[str, Any]:
        # Django checks the constraint only in a form with both of its columns.
        cleaned = super().clean() or self.cleaned_data
        project, name = cleaned.get("project") or self.instance.project_id, cleaned.get("name")
        if project and name:
            same = PromptConfig.objects.filter(project=project, name=name)
            if same.exclude(pk=self.instance.pk).exists():
                self.add_error("name", ConfigExistsError(name).message)
        return cleaned


@admin.register(PromptConfig)
class PromptConfigAdmin(RightsAdmin):
    form = ConfigForm
    list_display = ["name", "project", "active", "version_count", "has_active_rollout", "updated_at"]
    list_filter = ["has_active_rollout", "project"]
    list_select_related = ["project", "active_version"]
    search_fields = ["name", "description", "project__name"]
    fields = ["project", "name", "description", "active", "version_count", "has_active_rollout", "updated_at"]
    shown_only = ["active", "version_count", "has_active_rollout", "updated_at"]
    actions = ["undo"]

    @override
    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Leads to the editor, which writes a prompt together with its first version."""
        editor = address_if_there("prompt_new")
        if request.method == "GET" and editor and self.has_add_permission(request):
            return HttpResponseRedirect(editor)
        shown: HttpResponse = super().add_view(request, form_url, extra_context)
        return shown

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[PromptConfig]:
        configs: QuerySet[PromptConfig] = super().get_queryset(request)
        return configs.annotate(version_count=Count("versions"))

    @override
    def get_fields(self, request: HttpRequest, obj: PromptConfig | None = None) -> Any:
        return self.fields if obj else ConfigForm.Meta.fields

    @override
    def get_readonly_fields(self, request: HttpRequest, obj: PromptConfig | None = None) -> list[str]:
        return ["project", *self.shown_only] if obj else []

    @admin.display(description="active version")
    def active(self, config: PromptConfig) -> str:
        return "-" if config.active_version is None else _link(config.active_version)

    @admin.display(description="versions")
    def version_count(self, config: PromptConfig) -> int:
        count: int = config.version_count  # type: ignore[attr-defined]  # annotated by get_queryset
        return count

    @override
    def save_model(self, request: HttpRequest, obj: PromptConfig, form: Any, change: bool) -> None:
        if change:
            services.update_config(
                project_id=obj.project_id,
                config_id=obj.pk,
                name=obj.name,
                description=obj.description,
                actor=actor_of(request),
            )
            return
        row = services.create_config(
            project_id=obj.project_id, name=obj.name, description=obj.description, actor=actor_of(request)
        )
        # The admin continues with the object it made, so that object becomes the stored row.
        obj.__dict__.update(row.__dict__)

    @override
    def has_delete_permission(self, request: HttpRequest, obj: PromptConfig | None = None) -> bool:
        return not (obj and obj.has_active_rollout) and super().has_delete_permission(request, obj)

    @override
    def get_deleted_objects(
        self, objs: Sequence[PromptConfig] | QuerySet[PromptConfig], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Lists the rows that go with a config: its versions and history, which cannot be deleted alone."""
        tree, counts, needed, protected = super().get_deleted_objects(objs, request)
        own = {str(model._meta.verbose_name) for model in (PromptVersion, PromptActivation)}
        return tree, counts, needed - own, protected

    @override
    def delete_model(self, request: HttpRequest, obj: PromptConfig) -> None:
        services.delete_config(project_id=obj.project_id, config_id=obj.pk, actor=actor_of(request))

    @override
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[PromptConfig]) -> None:
        for config in queryset:
            try:
                self.delete_model(request, config)
            except ApplicationError as error:
                messages.error(request, f"{config.name}: {error.message}")

    @admin.action(description="Undo the last activation of the selected config", permissions=["change"])
    def undo(self, request: HttpRequest, queryset: QuerySet[PromptConfig]) -> HttpResponse | None:
        chosen = list(queryset[:2])
        if len(chosen) != 1:
            messages.error(request, "Select one config.")
            return None
        return HttpResponseRedirect(reverse("admin:prompts_undo", args=[chosen[0].pk]))

    @override
    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("<uuid:config_id>/diff/", wrap(partial(diff_page, self)), name="prompts_diff"),
            path("<uuid:config_id>/undo/", wrap(partial(undo_page, self)), name="prompts_undo"),
            path(
                "<uuid:config_id>/activate/<uuid:version_id>/",
                wrap(partial(activate_page, self)),
                name="prompts_activate",
            ),
            *super().get_urls(),
        ]


_VERSION_FIELDS: list[str] = [
    "config",
    "number",
    "active",
    "prompt",
    "model",
    "temperature",
    "max_tokens",
    "shown_variables",
    "shown_tools",
    "shown_format",
    "commit_message",
    "created_by",
    "created_at",
]


@admin.register(PromptVersion)
class PromptVersionAdmin(RightsAdmin):
    project_lookup = "config__project"
    rights_of_actions = {"activate": right_of_page("prompts_activate")}
    list_display = ["number", "config", "active", "model", "commit_message", "created_by", "created_at"]
    list_display_links = ["number"]
    list_filter = ["config__project"]
    list_select_related = ["config"]
    search_fields = ["config__name", "commit_message", "system_prompt"]
    fields = [*_VERSION_FIELDS]
    readonly_fields = _VERSION_FIELDS
    actions = ["compare", "activate"]

    @override
    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup == "config__id__exact" or super().lookup_allowed(lookup, value, request)

    @admin.display(boolean=True)
    def active(self, version: PromptVersion) -> bool:
        return version.config.active_version_id == version.pk

    @admin.display(description="system prompt")
    def prompt(self, version: PromptVersion) -> str:
        return _block(written_out(version.system_prompt, version.messages))

    @admin.display(description="variables")
    def shown_variables(self, version: PromptVersion) -> str:
        return _block(pretty(version.variables))

    @admin.display(description="tools")
    def shown_tools(self, version: PromptVersion) -> str:
        return _block(pretty(version.tools))

    @admin.display(description="response format")
    def shown_format(self, version: PromptVersion) -> str:
        return _block(pretty(version.response_format))

    @admin.action(description="Compare the two selected versions", permissions=["view"])
    def compare(self, request: HttpRequest, queryset: QuerySet[PromptVersion]) -> HttpResponse | None:
        chosen = list(queryset.order_by("number")[:3])
        if len(chosen) != 2 or chosen[0].config_id != chosen[1].config_id:
            messages.error(request, "Select two versions of one config.")
            return None
        before, after = chosen
        page = reverse("admin:prompts_diff", args=[before.config_id])
        return HttpResponseRedirect(f"{page}?before={before.pk}&after={after.pk}")

    @admin.action(description="Activate the selected version", permissions=["activate"])
    def activate(self, request: HttpRequest, queryset: QuerySet[PromptVersion]) -> HttpResponse | None:
        chosen = list(queryset[:2])
        if len(chosen) != 1:
            messages.error(request, "Select one version.")
            return None
        version = chosen[0]
        return HttpResponseRedirect(reverse("admin:prompts_activate", args=[version.config_id, version.pk]))

    def has_activate_permission(self, request: HttpRequest) -> bool:
        """Returns whether the person may change configs, which includes activation."""
        return self.permits(request, right_of_page("prompts_activate"))


@admin.register(PromptActivation)
class PromptActivationAdmin(RightsAdmin):
    project_lookup = "config__project"
    list_display = ["created_at", "config", "kind", "from_version", "to_version", "actor", "reason"]
    list_filter = ["kind", "config__project"]
    list_select_related = ["config", "from_version", "to_version"]
    search_fields = ["config__name", "actor", "reason"]
    ordering = ["-id"]

    @override
    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup == "config__id__exact" or super().lookup_allowed(lookup, value, request)


def _link(version: PromptVersion) -> str:
    page = reverse("admin:prompts_promptversion_change", args=[version.pk])
    return format_html('<a href="{}">{}</a>', page, version)


def _block(text: str) -> str:
    return format_html("<pre>{}</pre>", text)
