"""Projects, members, keys and accounts in the admin. The console's pages make and change keys and memberships."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from typing_extensions import override

from core.models import ApiKey, Membership, Project
from core.services import register_project
from core.sign_in.second_factor import remove
from core.site.admin import RightsAdmin

if TYPE_CHECKING:
    # ModelAdmin is generic only in the type stubs.
    PeopleAdmin = UserAdmin[User]
else:
    PeopleAdmin = UserAdmin


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


@admin.register(ApiKey)
class ApiKeyAdmin(RightsAdmin):
    page_of_changes = "api_keys"
    list_display = ["name", "prefix", "project", "scopes", "expires_at", "revoked_at", "last_used_at", "created_at"]
    list_filter = ["project", "revoked_at"]
    list_select_related = ["project"]
    search_fields = ["name", "prefix", "project__name"]
    fields = ["name", "project", "prefix", "scopes", "expires_at", "revoked_at", "last_used_at", "created_at"]


@admin.register(Membership)
class MembershipAdmin(RightsAdmin):
    page_of_changes = "members"
    list_display = ["user", "role", "project", "created_by", "created_at"]
    list_display_links = ["user"]
    list_filter = ["role", "project"]
    list_select_related = ["project", "user"]
    search_fields = ["user__username", "project__name"]
    fields = ["user", "project", "role", "created_by", "created_at"]


admin.site.unregister(User)
# Groups carry Django's permissions, which this admin does not use.
admin.site.unregister(Group)


@admin.register(User)
class PersonAdmin(RightsAdmin, PeopleAdmin):
    """The admin of accounts. A staff account may sign in to the admin, and its memberships decide what it shows."""

    project_lookup = ""
    filter_horizontal = ()
    list_filter = ["is_staff", "is_superuser", "is_active"]
    list_display = ["username", "email", "is_staff", "is_superuser", "is_active", "last_login"]
    actions = ["reset_second_factor"]
    fieldsets = [
        (None, {"fields": ["username", "password"]}),
        ("Person", {"fields": ["first_name", "last_name", "email"]}),
        ("May sign in", {"fields": ["is_active", "is_staff", "is_superuser"]}),
        ("Dates", {"fields": ["last_login", "date_joined"]}),
    ]

    @admin.action(description="Take the second factor away", permissions=["change"])
    def reset_second_factor(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        removed = sum(remove(person) for person in queryset)
        self.message_user(request, f"{removed} of these accounts had a second factor, which was taken away.")
