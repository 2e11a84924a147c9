"""People and their roles in the admin: a project's members for its administrators, accounts for superusers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from typing_extensions import override

from core.errors import ApplicationError
from core.members.services import add_member, change_role, is_last_administrator, remove_member
from core.models import Membership
from core.rights.asking import sees_every_project
from core.roles import Role
from core.site.admin import RightsAdmin

if TYPE_CHECKING:
    # ModelAdmin is generic only in the type stubs.
    MemberModelForm = forms.ModelForm[Membership]
    PeopleAdmin = UserAdmin[User]
else:
    MemberModelForm = forms.ModelForm
    PeopleAdmin = UserAdmin


class NewMemberForm(MemberModelForm):
    """The form takes the person's name as text, because a list of choices would show every account."""

    username = forms.CharField(max_length=150, help_text="Of somebody who can sign in to these pages.")

    class Meta:
        model = Membership
        fields = ["project", "role"]

    @override
    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        user = User.objects.filter(username=cleaned["username"], is_staff=True, is_active=True).first()
        if user is None:
            self.add_error("username", "There is no member of staff with this name.")
        elif Membership.objects.filter(project=cleaned["project"], user=user).exists():
            self.add_error("username", "Is a member of this project already.")
        return cleaned


class RoleForm(MemberModelForm):
    is_superuser = False

    class Meta:
        model = Membership
        fields = ["role"]

    def clean_role(self) -> str:
        role: str = self.cleaned_data["role"]
        if role != Role.ADMINISTRATOR and not self.is_superuser and is_last_administrator(self.instance):
            raise forms.ValidationError("The project would be left without an administrator.")
        return role


@admin.register(Membership)
class MembershipAdmin(RightsAdmin):
    list_display = ["user", "role", "project", "created_by", "created_at"]
    list_display_links = ["user"]
    list_filter = ["role", "project"]
    list_select_related = ["project", "user"]
    search_fields = ["user__username", "project__name"]

    @override
    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        kwargs["form"] = RoleForm if change else NewMemberForm
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.is_superuser = sees_every_project(request.user)
        return form

    @override
    def get_fields(self, request: HttpRequest, obj: Membership | None = None) -> Any:
        return ["user", "project", "role", "created_by", "created_at"] if obj else ["project", "username", "role"]

    @override
    def get_readonly_fields(self, request: HttpRequest, obj: Membership | None = None) -> list[str]:
        return ["user", "project", "created_by", "created_at"] if obj else []

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Membership | None = None) -> bool:
        stays = obj is not None and not sees_every_project(request.user) and is_last_administrator(obj)
        return not stays and super().has_delete_permission(request, obj)

    @override
    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        role = Role(obj.role)
        try:
            if change:
                row = change_role(
                    project_id=obj.project_id,
                    member_id=obj.pk,
                    role=role,
                    is_superuser=sees_every_project(request.user),
                )
            else:
                username = form.cleaned_data["username"]
                actor = f"user:{request.user.get_username()}"
                row = add_member(project_id=obj.project_id, username=username, role=role, actor=actor)
        except ApplicationError as error:
            # Another administrator has added the person since the form was loaded.
            messages.error(request, error.message)
            row = Membership.objects.filter(project_id=obj.project_id).latest("pk")
        # The admin continues with the object it made, so that object becomes the stored row.
        obj.__dict__.update(row.__dict__)

    @override
    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        self._remove(request, obj)

    @override
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        for row in queryset:
            self._remove(request, row)

    def _remove(self, request: HttpRequest, row: Membership) -> None:
        try:
            remove_member(project_id=row.project_id, member_id=row.pk, is_superuser=sees_every_project(request.user))
        except ApplicationError as error:
            messages.error(request, f"{row}: {error.message}")


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
    fieldsets = [
        (None, {"fields": ["username", "password"]}),
        ("Person", {"fields": ["first_name", "last_name", "email"]}),
        ("May sign in", {"fields": ["is_active", "is_staff", "is_superuser"]}),
        ("Dates", {"fields": ["last_login", "date_joined"]}),
    ]
