from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http.response import HttpResponseBase

from core.errors import ValidationError
from core.members.services import add_member, change_role, remove_member
from core.models import Membership
from core.roles import Role
from core.ui.edit import EditPage
from core.ui.pages import Visit

MAX_MEMBERS = 500


class NewMemberForm(forms.Form):
    username = forms.CharField(max_length=150, label="Name", help_text="Of an account that may sign in to these pages.")
    role = forms.ChoiceField(choices=Role.choices, label="Role")


class MembersPage(EditPage[None, NewMemberForm]):
    route = "members/"
    name = "members"
    title = "Members"
    saves = ("add",)
    fields_of_codes = {"": "username"}

    def form(self, visit: Visit, record: None, data: Any = None) -> NewMemberForm:
        return NewMemberForm(data)

    def save(self, visit: Visit, record: None, form: NewMemberForm) -> HttpResponseBase:
        username, role = form.cleaned_data["username"], Role(form.cleaned_data["role"])
        row = add_member(project_id=visit.project.pk, username=username, role=role, actor=visit.actor)
        return visit.done(f"{row.user} is a member now.", visit.link(self.name))

    def do_remove(self, visit: Visit, record: None) -> HttpResponseBase:
        remove_member(**_named(visit))
        return visit.done("The member was taken out; the account stays.", visit.link(self.name))

    def do_change(self, visit: Visit, record: None) -> HttpResponseBase:
        given = visit.request.POST.get("role")
        if given not in Role.values:
            raise ValidationError("There is no such role.")
        row = change_role(**_named(visit), role=Role(given))
        return visit.done(f"{row.user} is {Role(given).label.lower()} from the next request on.", visit.link(self.name))

    def shown(self, visit: Visit, record: None, form: NewMemberForm) -> Mapping[str, Any]:
        members = Membership.objects.for_project(visit.project.pk).select_related("user").order_by("user__username")
        return {"members": members[:MAX_MEMBERS], "roles": Role.choices}


def _named(visit: Visit) -> dict[str, Any]:
    given = visit.request.POST.get("member", "")
    member_id = int(given) if given.isdecimal() else 0
    return {
        "project_id": visit.project.pk,
        "member_id": member_id,
        "is_superuser": bool(visit.person.is_superuser),
    }
