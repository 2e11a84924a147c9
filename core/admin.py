"""Projects and their keys in the admin. A key is shown in one message when it is made, and nowhere afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from typing_extensions import override

from core.keys.scope_field import ScopesField
from core.keys.services import issue_key, revoke_key
from core.members.admin import MembershipAdmin as MembershipAdmin
from core.models import ApiKey, Project
from core.services import register_project
from core.site.admin import RightsAdmin

if TYPE_CHECKING:
    # ModelAdmin is generic only in the type stubs.
    ApiKeyModelForm = forms.ModelForm[ApiKey]
else:
    ApiKeyModelForm = forms.ModelForm


@admin.register(Project)
class ProjectAdmin(RightsAdmin):
    project_lookup = "pk"
    list_display = ["name", "id", "created_at"]
    search_fields = ["name", "id"]
    readonly_fields = ["id", "created_at"]

    @override
    def save_model(self, request: HttpRequest, obj: Project, form: forms.ModelForm[Project], change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
        else:
            register_project(obj)


class NewApiKeyForm(ApiKeyModelForm):
    scopes = ScopesField()

    class Meta:
        model = ApiKey
        fields = ["project", "name", "scopes", "expires_at"]

    def clean_expires_at(self) -> Any:
        expires_at = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= timezone.now():
            raise forms.ValidationError("Must be in the future.")
        return expires_at


@admin.register(ApiKey)
class ApiKeyAdmin(RightsAdmin):
    list_display = ["name", "prefix", "project", "scopes", "expires_at", "revoked_at", "last_used_at", "created_at"]
    list_filter = ["project", "revoked_at"]
    list_select_related = ["project"]
    search_fields = ["name", "prefix", "project__name"]
    actions = ["revoke"]
    # Only the name of a key may change: its holder relies on everything else.
    fixed_fields = ["project", "prefix", "scopes", "expires_at", "revoked_at", "last_used_at", "created_at"]

    @override
    def get_form(
        self, request: HttpRequest, obj: ApiKey | None = None, change: bool = False, **kwargs: Any
    ) -> type[forms.ModelForm[ApiKey]]:
        if not change:
            kwargs["form"] = NewApiKeyForm
        return super().get_form(request, obj, change, **kwargs)

    @override
    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        return ["name", *self.fixed_fields] if obj else NewApiKeyForm.Meta.fields

    @override
    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> list[str]:
        return self.fixed_fields if obj else []

    @override
    def save_model(self, request: HttpRequest, obj: ApiKey, form: forms.ModelForm[ApiKey], change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        row, key = issue_key(obj.project, name=obj.name, scopes=obj.scopes, expires_at=obj.expires_at)
        # The admin continues with the object it made, so that object becomes the stored row.
        obj.__dict__.update(row.__dict__)
        messages.warning(request, f"The key, shown only now: {key}")

    @admin.action(description="Revoke selected keys", permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        for key in queryset:
            revoke_key(key)
        messages.success(request, f"{len(queryset)} revoked; gateways forget them within a second.")
