from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from core.fleet.hosts import state_of
from core.models import ApiKey, Host, Membership, Project
from core.services import register_project
from core.sign_in.second_factor import remove
from core.site.admin import RightsAdmin
from core.ui.formats import NONE
from core.ui.marks import status

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

    def save_model(self, request: HttpRequest, obj: Project, form: forms.ModelForm[Project], change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
        else:
            register_project(obj)


_HOST_MARKS = {"serving": "good", "silent": "bad", "left": "neutral"}


@admin.register(Host)
class HostAdmin(RightsAdmin):
    project_lookup: ClassVar[str] = ""
    list_display = ["name", "state", "seen_at", "version", "ready", "in_flight", "unshipped", "not_up", "started_at"]
    search_fields = ["name"]
    fields = ["name", "state", "seen_at", "left_at", "started_at", "version", "ready", "in_flight", "unshipped"]

    @admin.display(description="state")
    def state(self, row: Host) -> str:
        found = state_of(row, timezone.now())
        return status(found, _HOST_MARKS[found])

    @admin.display(description="web workers ready")
    def ready(self, row: Host) -> str:
        return f"{row.report.get('ready', 0)} of {row.report.get('web_workers', 0)}"

    @admin.display(description="requests in flight")
    def in_flight(self, row: Host) -> int:
        return int(row.report.get("in_flight", 0))

    @admin.display(description="bytes in the spool not yet stored")
    def unshipped(self, row: Host) -> str:
        found = row.report.get("unshipped_bytes")
        return NONE if found is None else str(found)

    @admin.display(description="children that are not up")
    def not_up(self, row: Host) -> str:
        return ", ".join(row.report.get("children_down", [])) or NONE


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
