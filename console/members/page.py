"""The page of a project's members and their roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase

from core.errors import ApplicationError
from core.members.services import add_member, change_role, remove_member
from core.models import Membership
from core.roles import Role
from core.ui.pages import Page, Visit
from core.ui.registry import register_page

MAX_MEMBERS = 500


class NewMemberForm(forms.Form):
    username = forms.CharField(max_length=150, label="Name", help_text="Of an account that may sign in to these pages.")
    role = forms.ChoiceField(choices=Role.choices, label="Role")


@register_page
class MembersPage(Page):
    route = "members/"
    name = "members"
    title = "Members"
    template = "members/page.html"
    methods = ("GET", "HEAD", "POST")

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return _shown(visit, NewMemberForm())

    def post(self, visit: Visit, **route: Any) -> HttpResponseBase:
        given = visit.request.POST
        action = given.get("action", "")
        if action == "add":
            return self._add(visit, NewMemberForm(given))
        member_id = int(given["member"]) if given.get("member", "").isdecimal() else 0
        is_superuser = bool(visit.person.is_superuser)
        try:
            if action == "remove":
                remove_member(project_id=visit.project.pk, member_id=member_id, is_superuser=is_superuser)
                messages.success(visit.request, "The member was taken out; the account stays.")
            elif action == "change" and given.get("role") in Role.values:
                role = Role(given["role"])
                row = change_role(
                    project_id=visit.project.pk, member_id=member_id, role=role, is_superuser=is_superuser
                )
                messages.success(visit.request, f"{row.user} is {role.label.lower()} from the next request on.")
        except ApplicationError as error:
            messages.error(visit.request, error.message)
        return HttpResponseRedirect(visit.link(self.name))

    def _add(self, visit: Visit, form: NewMemberForm) -> HttpResponseBase:
        if form.is_valid():
            values = form.cleaned_data
            actor = visit.actor
            try:
                row = add_member(
                    project_id=visit.project.pk, username=values["username"], role=Role(values["role"]), actor=actor
                )
            except ApplicationError as error:
                form.add_error("username", error.message.removeprefix("username: "))
            else:
                messages.success(visit.request, f"{row.user} is a member now.")
                return HttpResponseRedirect(visit.link(self.name))
        return self.render(visit, **_shown(visit, form))


def _shown(visit: Visit, form: NewMemberForm) -> dict[str, Any]:
    members = Membership.objects.for_project(visit.project.pk).select_related("user").order_by("user__username")
    return {"members": members[:MAX_MEMBERS], "form": form, "roles": Role.choices}
