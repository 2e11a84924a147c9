from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth import get_user_model
from django.http.response import HttpResponseBase

from core.errors import ValidationError
from core.members.invitations import invite, revoke_invitation, send_invitation
from core.members.services import add_member, change_role, remove_member
from core.models import Invitation, Membership
from core.roles import Role
from core.ui.edit import EditPage, whole_number
from core.ui.pages import Visit

MAX_MEMBERS = 500


class NewMemberForm(forms.Form):
    username = forms.CharField(
        max_length=254, label="Name or e-mail address", help_text="An address invites somebody who has no account yet."
    )
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
        if "@" in username and not get_user_model().objects.filter(username=username).exists():
            return self._invite(visit, form, role)
        row = add_member(project_id=visit.project.pk, username=username, role=role, actor=visit.actor)
        return visit.done(f"{row.user} is a member now.", visit.link(self.name))

    def _invite(self, visit: Visit, form: NewMemberForm, role: Role) -> HttpResponseBase:
        try:
            address = forms.EmailField().clean(form.cleaned_data["username"])
        except forms.ValidationError as error:
            form.add_error("username", error)
            return self.again(visit, None, form)
        row, link = invite(project_id=visit.project.pk, email=address, role=role, actor=visit.actor)
        is_sent = send_invitation(row, link)
        return self.again(visit, None, NewMemberForm(), invited=row, link=link, is_sent=is_sent)

    def do_revoke(self, visit: Visit, record: None) -> HttpResponseBase:
        row = revoke_invitation(visit.project.pk, _number(visit, "invitation"))
        return visit.done(f"The invitation of {row.email} is taken back.", visit.link(self.name))

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
        invitations = Invitation.objects.for_project(visit.project.pk)
        return {
            "members": members[:MAX_MEMBERS], "roles": Role.choices, "invitations": invitations,
            "by_provider": bool(settings.OIDC_PROVIDERS),
        }  # fmt: skip


def _named(visit: Visit) -> dict[str, Any]:
    return {
        "project_id": visit.project.pk,
        "member_id": _number(visit, "member"),
        "is_superuser": bool(visit.person.is_superuser),
    }


def _number(visit: Visit, name: str) -> int:
    given = visit.request.POST.get(name, "")
    return whole_number(given) if given.isdecimal() else 0
